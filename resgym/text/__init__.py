"""The game in words: players that read and write text, games as chats for fine-tuning."""

from resgym.text.chats import Decision, decisions_of, record_games, score_decisions
from resgym.text.player import TextPlayer
from resgym.text.scripted import answers_of
from resgym.text.wording import AnswerError, chat_of, read_answer, read_position, write_answer

__all__ = [
    "AnswerError",
    "Decision",
    "TextPlayer",
    "answers_of",
    "chat_of",
    "decisions_of",
    "read_answer",
    "read_position",
    "record_games",
    "score_decisions",
    "write_answer",
]
