const digit = /[0-9]/;
const hexDigits = /^[0-9a-fA-F]{0,5}/;

/** The text from which on an address is wrong. */
const from = (rest: string) => ` (at ${JSON.stringify(rest)})`;

/** Go's reason why a text is not an IP address. */
export function addressProblem(text: string): string {
  const unknown = 'unable to parse IP';
  const first = /[.:%]/.exec(text)?.[0];
  if (first === '.') return v4Problem(text) ?? unknown;
  if (first === ':') return v6Problem(text) ?? unknown;
  return first === undefined ? unknown : 'missing IPv6 address';
}

function v4Problem(text: string): string | undefined {
  let [value, digits, dots] = [0, 0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (digit.test(character)) {
      if (digits === 1 && value === 0) return 'IPv4 field has octet with leading zero';
      value = value * 10 + Number(character);
      digits += 1;
      if (value > 255) return 'IPv4 field has value >255';
      continue;
    }
    if (character !== '.') return `unexpected character${from(text.slice(at))}`;
    if (digits === 0 || at === text.length - 1) {
      return `IPv4 field must have at least one digit${from(text.slice(at))}`;
    }
    if (dots === 3) return 'IPv4 address too long';
    [value, digits, dots] = [0, 0, dots + 1];
  }
  return dots < 3 ? 'IPv4 address too short' : undefined;
}

function v6Problem(text: string): string | undefined {
  const percent = text.indexOf('%');
  if (percent === text.length - 1) return 'zone must be a non-empty string';
  let rest = percent < 0 ? text : text.slice(0, percent);
  let groups = 0;
  let hasGap = rest.startsWith('::');
  if (hasGap) rest = rest.slice(2);
  while (groups < 8) {
    const { length } = hexDigits.exec(rest)?.[0] ?? '';
    if (length > 4) return `each group must have 4 or less digits${from(rest)}`;
    if (length === 0) {
      return `each colon-separated field must have at least one digit${from(rest)}`;
    }
    if (rest.charAt(length) === '.') return embeddedProblem(rest, { groups, hasGap });
    groups += 1;
    rest = rest.slice(length);
    if (rest === '') break;
    if (!rest.startsWith(':')) return `unexpected character, want colon${from(rest)}`;
    if (rest === ':') return `colon must be followed by more characters${from(rest)}`;
    rest = rest.slice(1);
    if (!rest.startsWith(':')) continue;
    if (hasGap) return `multiple :: in address${from(rest)}`;
    hasGap = true;
    rest = rest.slice(1);
    if (rest === '') break;
  }
  if (rest !== '') return `trailing garbage after address${from(rest)}`;
  return sizeProblem({ groups, hasGap });
}

interface Groups {
  readonly groups: number;
  readonly hasGap: boolean;
}

function sizeProblem({ groups, hasGap }: Groups): string | undefined {
  if (groups < 8) return hasGap ? undefined : 'address string too short';
  return hasGap ? 'the :: must expand to at least one field of zeros' : undefined;
}

/** The problem of an address of version 6 that ends with one of version 4. */
function embeddedProblem(rest: string, { groups, hasGap }: Groups): string | undefined {
  if (!hasGap && groups !== 6) {
    const rule = 'embedded IPv4 address must replace the final 2 fields of the address';
    return `${rule}${from(rest)}`;
  }
  if (groups > 6) {
    return `too many hex fields to fit an embedded IPv4 at the end of the address${from(rest)}`;
  }
  return v4Problem(rest) ?? sizeProblem({ groups: groups + 2, hasGap });
}
