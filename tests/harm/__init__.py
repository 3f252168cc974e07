"""Sessions that ended a kernel, or changed the program in it, before gpumem did no harm."""
