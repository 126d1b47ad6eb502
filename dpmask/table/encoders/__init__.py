"""How columns become numbers: every encoder is learned in one pass and turns a block's column into an array."""
