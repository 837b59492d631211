/** The characters of a token in a media type. */
const token = "[!#$%&'*+\\-.^_`{|}~0-9A-Za-z]+";
const parameter = new RegExp(
  `\\s*;\\s*(?<name>${token})\\s*=\\s*(?<value>${token}|"(?:[^"\\\\\\r\\n]|\\\\[^\\r\\n])*")`,
  'y',
);
const leadingToken = new RegExp(`^${token}`);

/**
 * Returns why Go's parser refuses a media type, with its parameters, in Go's words; undefined if it
 * accepts it.
 */
export function mediaTypeFault(contentType: string): string | undefined {
  // Otherwise each test for a remaining parameter would read all spaces at the end.
  const text = contentType.trimEnd();
  const [base = ''] = text.split(';', 1);
  const fault = typeFault(base.trim());
  if (fault !== undefined) return `mime: ${fault}`;
  const values = new Map<string, string>();
  let at = base.length;
  while (at < text.length) {
    parameter.lastIndex = at;
    const { name = '', value = '' } = parameter.exec(text)?.groups ?? {};
    if (name === '') {
      return text.slice(at).trimStart() === ';' ? undefined : 'mime: invalid media parameter';
    }
    const key = name.toLowerCase();
    if ((values.get(key) ?? value) !== value) return 'mime: duplicate parameter name';
    values.set(key, value);
    at = parameter.lastIndex;
  }
  return undefined;
}

function typeFault(type: string): string | undefined {
  const main = leadingToken.exec(type)?.[0] ?? '';
  if (main === '') return 'no media type';
  const rest = type.slice(main.length);
  if (rest === '') return undefined;
  if (!rest.startsWith('/')) return 'expected slash after first token';
  const sub = leadingToken.exec(rest.slice(1))?.[0] ?? '';
  if (sub === '') return 'expected token after slash';
  return rest.length > sub.length + 1 ? 'unexpected content after media subtype' : undefined;
}
