// Tables in Markdown for VitePress, whose templates interpret braces and tags in plain text.

const escapes = { '|': '\\|', '<': '&lt;', '{': '&#123;', '}': '&#125;', '*': '\\*', _: '\\_' };

/** Escapes plain text for a cell; code between backquotes stays code. */
export function cell(text) {
  const parts = text.replaceAll('\n', ' ').split('`');
  return parts
    .map((part, index) =>
      index % 2 === 1 ? code(part) : part.replace(/[|<{}*_]/g, (character) => escapes[character]),
    )
    .join('');
}

/** Formats a text as code that may break after an underscore. */
export function code(text) {
  if (text === '') return '';
  return `<code v-pre>${text.replace(/[&<|`*_[\]]/g, entity).replaceAll('&#95;', '&#95;<wbr>')}</code>`;
}

const entity = (character) => `&#${character.codePointAt(0)};`;

/** Formats a table. Each row has a formatted cell for each of `columns`. */
export function table(columns, rows) {
  const lines = [columns, columns.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}
