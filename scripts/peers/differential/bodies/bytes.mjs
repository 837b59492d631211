// Texts with bytes that are no characters.

const rawFrom = 0xf700;

/** A character that stands for one byte, which `bytesOf` writes. */
export const rawByte = (byte) => String.fromCharCode(rawFrom + byte);

/** The bytes of a text, with those that `rawByte` stands for. */
export function bytesOf(text) {
  const parts = [];
  let plain = '';
  for (const character of text) {
    const code = character.charCodeAt(0);
    if (code < rawFrom || code > rawFrom + 0xff) {
      plain += character;
      continue;
    }
    parts.push(Buffer.from(plain), Buffer.from([code - rawFrom]));
    plain = '';
  }
  return Buffer.concat([...parts, Buffer.from(plain)]);
}

/** Texts that a string may not contain as it is, or that decoders treat differently. */
export const oddCharacters = [
  rawByte(0xff),
  rawByte(0xc3),
  `${rawByte(0xed)}${rawByte(0xa0)}${rawByte(0x80)}`,
  `${rawByte(0xc0)}${rawByte(0x80)}`,
  `${rawByte(0xf0)}${rawByte(0x9f)}${rawByte(0x98)}`,
  `${rawByte(0xf4)}${rawByte(0x90)}${rawByte(0x80)}${rawByte(0x80)}`,
  '\u0000',
  '\u0001',
  '\u001f',
  '\u007f',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\ufffe',
  '\ufffd',
  '\t',
  '\n',
  '\r',
  '😀',
];
