# Forwards to `./dev`, which has the recipes: `just dev RECIPE [ARG...]`. `just` alone lists them.
set positional-arguments

dev *args:
    @./dev "$@"
