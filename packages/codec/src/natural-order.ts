/**
 * The order upstream's YAML has members in: numbers inside names by their size (`a2` before `a10`),
 * letters behind other characters, otherwise by code point.
 */
export function compareNaturally(one: string, other: string): number {
  const ends = Math.min(one.length, other.length);
  let at = 0;
  while (at < ends && one[at] === other[at]) at += 1;
  if (at === ends) return one.length - other.length;
  const left = one.charAt(at);
  const right = other.charAt(at);
  const isLeftLetter = isLetter(left);
  const isRightLetter = isLetter(right);
  if (isLeftLetter !== isRightLetter) return isRightLetter ? -1 : 1;
  if (!isLeftLetter) {
    const bySize = compareNumbers(one, other, at);
    if (bySize !== 0) return bySize;
  }
  return left < right ? -1 : 1;
}

/** Compares the digits from `at` on; behind a shared number a zero counts as one of its digits. */
function compareNumbers(one: string, other: string, at: number): number {
  const follows = (one[at] === '0' || other[at] === '0') && hasNumberBefore(one, at) ? '1' : '0';
  const left = digitsFrom(one, at);
  const right = digitsFrom(other, at);
  const byValue = Number(follows + left) - Number(follows + right);
  return byValue !== 0 ? byValue : left.length - right.length;
}

function hasNumberBefore(text: string, at: number): boolean {
  for (let back = at - 1; back >= 0 && isDigit(text[back]); back -= 1) {
    if (text[back] !== '0') return true;
  }
  return false;
}

function digitsFrom(text: string, at: number): string {
  let end = at;
  while (end < text.length && isDigit(text[end])) end += 1;
  return text.slice(at, end);
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= '0' && character <= '9';
}

function isLetter(character: string): boolean {
  return character < '\u0080' ? /[A-Za-z]/.test(character) : /\p{L}/u.test(character);
}
