"""Install pip into a virtual environment from the wheel that Python itself ships, then let it update from the index."""

import ensurepip
import pathlib
import sys

wheel = next((pathlib.Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
sys.path.insert(0, str(wheel))

from pip._internal.cli.main import main  # type: ignore[import-not-found]

wanted = [argument for argument in sys.argv[1:] if argument not in ("--no-setuptools", "--no-wheel")]
sys.exit(main(["install", "--upgrade", *wanted]))
