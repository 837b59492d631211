const htmlEscapes: Readonly<Record<string, string>> = {
  '\0': '\ufffd',
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
};

/** As Go's `html` in templates. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[\0"'&<>]/g, (character) => htmlEscapes[character] ?? character);
}

/** As Go's `urlquery` in templates. */
export function escapeQuery(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
    .replaceAll('%20', '+')
    .replaceAll(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    );
}

/** As Go's `js` in templates. */
export function escapeScript(text: string): string {
  return text.replaceAll(/[\\'"<>&=\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    if (character === '\\' || character === "'" || character === '"') return `\\${character}`;
    const code = character.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
  });
}
