from fenchel._core._portable import *
