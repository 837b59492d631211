import { goQuoted } from './field-error.ts';

/** IP addresses as Go's strict reader takes them, with its words for what it does not. */

/** What is wrong with an address; undefined for a good one. */
export function strictAddressProblem(address: string): string | undefined {
  const found = faultOf(address);
  if (found === undefined) return undefined;
  const where = found.at === '' ? '' : ` (at ${goQuoted(found.at)})`;
  return `ParseAddr(${goQuoted(address)}): ${found.what}${where}`;
}

interface Fault {
  readonly what: string;
  /** The rest of the text from where it cannot be read. */
  readonly at: string;
}

function faultOf(address: string): Fault | undefined {
  switch (/[.:%]/.exec(address)?.[0]) {
    case '.':
      return fieldsFault(address);
    case ':':
      return groupsFault(address);
    case '%':
      return { what: 'missing IPv6 address', at: '' };
    default:
      return { what: 'unable to parse IP', at: '' };
  }
}

/** Of four numbers with dots between them. */
function fieldsFault(text: string): Fault | undefined {
  let [value, digits, place] = [0, 0, 0];
  for (let index = 0; index < text.length; index += 1) {
    const letter = text.charAt(index);
    const at = text.slice(index);
    if (/[0-9]/.test(letter)) {
      if (digits === 1 && value === 0) {
        return { what: 'IPv4 field has octet with leading zero', at: '' };
      }
      value = value * 10 + Number(letter);
      digits += 1;
      if (value > 255) return { what: 'IPv4 field has value >255', at: '' };
    } else if (letter === '.') {
      if (index === 0 || index === text.length - 1 || text[index - 1] === '.') {
        return { what: 'IPv4 field must have at least one digit', at };
      }
      if (place === 3) return { what: 'IPv4 address too long', at: '' };
      [value, digits, place] = [0, 0, place + 1];
    } else return { what: 'unexpected character', at };
  }
  return place < 3 ? { what: 'IPv4 address too short', at: '' } : undefined;
}

const bytesWanted = 16;

/** Of groups of hexadecimal digits, with a gap and an old address at the end where there are some. */
function groupsFault(address: string): Fault | undefined {
  const percent = address.indexOf('%');
  if (percent === address.length - 1) {
    return { what: 'zone must be a non-empty string', at: '' };
  }
  let rest = percent < 0 ? address : address.slice(0, percent);
  let hasGap = rest.startsWith('::');
  if (hasGap) rest = rest.slice(2);
  let bytes = 0;
  while (rest !== '' && bytes < bytesWanted) {
    const [digits = ''] = /^[0-9a-fA-F]*/.exec(rest) ?? [];
    const fault = groupFault(digits, rest);
    if (fault !== undefined) return fault;
    if (rest[digits.length] === '.') {
      const ending = endingFault(rest, { bytes, hasGap });
      if (ending !== undefined) return ending;
      [bytes, rest] = [bytes + 4, ''];
      break;
    }
    bytes += 2;
    rest = rest.slice(digits.length);
    if (rest === '') break;
    if (rest[0] !== ':') return { what: 'unexpected character, want colon', at: rest };
    if (rest.length === 1) return { what: 'colon must be followed by more characters', at: rest };
    rest = rest.slice(1);
    if (rest[0] !== ':') continue;
    if (hasGap) return { what: 'multiple :: in address', at: rest };
    hasGap = true;
    rest = rest.slice(1);
  }
  if (rest !== '') return { what: 'trailing garbage after address', at: rest };
  if (bytes < bytesWanted) {
    return hasGap ? undefined : { what: 'address string too short', at: '' };
  }
  return hasGap ? { what: 'the :: must expand to at least one field of zeros', at: '' } : undefined;
}

function groupFault(digits: string, rest: string): Fault | undefined {
  if (digits.length > 4) return { what: 'each group must have 4 or less digits', at: rest };
  return digits === ''
    ? { what: 'each colon-separated field must have at least one digit', at: rest }
    : undefined;
}

function endingFault(
  rest: string,
  { bytes, hasGap }: { bytes: number; hasGap: boolean },
): Fault | undefined {
  if (!hasGap && bytes !== 12) {
    const what = 'embedded IPv4 address must replace the final 2 fields of the address';
    return { what, at: rest };
  }
  if (bytes + 4 > bytesWanted) {
    const what = 'too many hex fields to fit an embedded IPv4 at the end of the address';
    return { what, at: rest };
  }
  return fieldsFault(rest);
}
