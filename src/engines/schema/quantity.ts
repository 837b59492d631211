const form = /^[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*$/;

/** A quantity in its stored form, or what the parser says of it. */
export function canonicalQuantity(
  text: string,
): { readonly text: string } | { readonly error: string } {
  if (!form.test(text)) {
    const pattern = '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$';
    return { error: `quantities must match the regular expression '${pattern}'` };
  }
  return { text };
}
