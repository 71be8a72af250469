# host all_coord: x² + y²
# 1 move deep, 3 charts, 2 leaves
# generic coefficients
use application "fan";
my $germ = new Polynomial<Rational, Int>(
  new Vector<Rational>([1, 2]), new Matrix<Int>([[2, 0], [0, 2]]));
# the rays of the cones where branches end, and for each its multiplicity and log discrepancy
my $rays = [[1, 1], [0, 1], [1, 0]];
my $cones = [[0, 1], [2, 0]];
my $orders = [[2, 2], [0, 1], [0, 1]];
my $fan = new PolyhedralFan(INPUT_RAYS => $rays, INPUT_CONES => $cones);
