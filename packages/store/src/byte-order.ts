/**
 * A string whose plain `<` order is the order of the key's UTF-8 bytes. The two differ only between
 * surrogate pairs (U+10000 and up) and U+E000 to U+FFFF, so nearly every key is returned as it is;
 * otherwise those two blocks of code units change places. Prefixes stay prefixes.
 */
export function byteOrdered(key: string): string {
  for (let i = 0; i < key.length; i++) {
    if (key.charCodeAt(i) >= 0xd800) return swapped(key);
  }
  return key;
}

function swapped(key: string): string {
  let result = '';
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    if (unit < 0xd800) result += key[i];
    else result += String.fromCharCode(unit < 0xe000 ? unit + 0x2000 : unit - 0x800);
  }
  return result;
}
