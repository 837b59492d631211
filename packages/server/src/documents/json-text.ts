import { jsonText } from '@wheelhouse/codec';

/**
 * The JSON text of an object, given the texts of its members in order. Undefined members are
 * omitted. Joining cached texts is much faster than building and encoding an object.
 */
export function objectText(members: Readonly<Record<string, string | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    text += `${text === '' ? '{' : ','}${jsonText(name)}:${value}`;
  }
  return text === '' ? '{}' : `${text}}`;
}

/** Like `objectText`, but takes each member as a text or in pieces, and returns pieces. */
export function objectPieces(
  members: Readonly<Record<string, string | readonly string[] | undefined>>,
): readonly string[] {
  const pieces: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    pieces.push(`${pieces.length === 0 ? '{' : ','}${jsonText(name)}:`);
    for (const piece of typeof value === 'string' ? [value] : value) pieces.push(piece);
  }
  return pieces.length === 0 ? ['{}'] : [...pieces, '}'];
}

/**
 * The JSON of an object whose members are sorted by name, in pieces of one member each. Yields after
 * each.
 */
export function* sortedPieces(
  members: ReadonlyMap<string, string>,
): Generator<void, readonly string[]> {
  if (members.size === 0) return ['{}'];
  const pieces: string[] = [];
  for (const name of [...members.keys()].sort()) {
    pieces.push(`${pieces.length === 0 ? '{' : ','}${jsonText(name)}:${members.get(name)}`);
    yield;
  }
  return [...pieces, '}'];
}
