import { randomBelow } from '../base/host.ts';
import { appendAll } from '../base/lists.ts';
import { type FieldError, invalid, required } from './field-error.ts';

/** A rule for names. Returns kube-apiserver's messages, none for a valid value. */
export type NameRule = (value: string) => readonly string[];

const maxLength = (length: number) => `must be no more than ${length} characters`;

/** Whether the UTF-8 of a text has more than `max` bytes, which Go counts as its length. */
export function exceedsBytes(text: string, max: number): boolean {
  if (text.length > max || text.length * 3 <= max) return text.length > max;
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes > max;
}

/** Called once for each message, since a body may have tens of thousands of invalid names. */
function pattern(message: string, regex: string, ...examples: readonly string[]): string {
  const list = examples.map((example) => `'${example}', `).join(' or ');
  return `${message} (e.g. ${list}regex used for validation is '${regex}')`;
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const isSubdomain = (value: string) =>
  label.test(value) || value.split('.').every((part) => label.test(part));
const labelFormat = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomainFormat = `${labelFormat}(\\.${labelFormat})*`;

const dnsSubdomainMessage = pattern(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  subdomainFormat,
  'example.com',
);

/** A DNS-1123 subdomain, such as the names of most objects. */
export const dnsSubdomain: NameRule = (value) => {
  const messages = exceedsBytes(value, 253) ? [maxLength(253)] : [];
  if (!isSubdomain(value)) messages.push(dnsSubdomainMessage);
  return messages;
};

const wildcardSubdomainMessage = pattern(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  `\\*\\.${subdomainFormat}`,
  '*.example.com',
);

/** A subdomain with a leading wildcard: `*.example.com`. */
export const wildcardSubdomain: NameRule = (value) => {
  const messages = exceedsBytes(value, 253) ? [maxLength(253)] : [];
  if (value.startsWith('*.') && isSubdomain(value.slice(2))) return messages;
  return [...messages, wildcardSubdomainMessage];
};

const dnsLabelMessage = pattern(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  labelFormat,
  'my-name',
  '123-abc',
);

/** A DNS-1123 label, such as the names of namespaces, containers, and volumes. */
export const dnsLabel: NameRule = (value) => {
  const messages = exceedsBytes(value, 63) ? [maxLength(63)] : [];
  if (label.test(value)) return messages;
  if (isSubdomain(value)) return [...messages, 'must not contain dots'];
  return [...messages, dnsLabelMessage];
};

const dns1035LabelMessage = pattern(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
);

/** A DNS-1035 label, such as the names of services. */
export const dns1035Label: NameRule = (value) => {
  const messages = exceedsBytes(value, 63) ? [maxLength(63)] : [];
  if (/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(value)) return messages;
  return [...messages, dns1035LabelMessage];
};

const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const qualifiedFormat = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const qualifiedText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const qualifiedPattern = pattern(qualifiedText, qualifiedFormat, 'MyName', 'my.name', '123-abc');
const qualifiedMessage = `a qualified name ${qualifiedPattern} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`;
const namePartMessage = `name part ${qualifiedPattern}`;

/** `name` or `domain/name`, such as label keys, resource names, and controllers. */
export const qualifiedName: NameRule = (value) => {
  const slash = value.indexOf('/');
  if (slash >= 0 && value.includes('/', slash + 1)) return [qualifiedMessage];
  const messages: string[] = [];
  const name = value.slice(slash + 1);
  if (slash >= 0) {
    const prefix = value.slice(0, slash);
    if (prefix === '') messages.push('prefix part must be non-empty');
    else
      appendAll(
        messages,
        dnsSubdomain(prefix).map((message) => `prefix part ${message}`),
      );
  }
  if (name === '') messages.push('name part must be non-empty');
  else if (exceedsBytes(name, 63)) messages.push(`name part ${maxLength(63)}`);
  if (!qualifiedPart.test(name)) messages.push(namePartMessage);
  return messages;
};

const labelValueMessage = pattern(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  `(${qualifiedFormat})?`,
  'MyValue',
  'my_value',
  '12345',
);

/** A label's value, which may be empty. */
export const labelValue: NameRule = (value) => {
  const messages = exceedsBytes(value, 63) ? [maxLength(63)] : [];
  if (value === '' || qualifiedPart.test(value)) return messages;
  return [...messages, labelValueMessage];
};

function parentDirectory(value: string): readonly string[] {
  if (value === '.') return ["must not be '.'"];
  if (value === '..') return ["must not be '..'"];
  return value.startsWith('..') ? ["must not start with '..'"] : [];
}

const configMapKeyMessage = pattern(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  '[-._a-zA-Z0-9]+',
  'key.name',
  'KEY_NAME',
  'key-name',
);

/** A key of a ConfigMap's or Secret's data. */
export const configMapKey: NameRule = (value) => {
  const messages = exceedsBytes(value, 253) ? [maxLength(253)] : [];
  if (!/^[-._a-zA-Z0-9]+$/.test(value)) messages.push(configMapKeyMessage);
  return [...messages, ...parentDirectory(value)];
};

const underscoreLabel = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

const underscoreSubdomainMessage = pattern(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  subdomainFormat,
  'example.com',
);

/** A subdomain whose labels may contain underscores, such as a search domain. */
export const underscoreSubdomain: NameRule = (value) => {
  const messages = exceedsBytes(value, 253) ? [maxLength(253)] : [];
  if (value.split('.').every((part) => underscoreLabel.test(part))) return messages;
  return [...messages, underscoreSubdomainMessage];
};

const strictEnvironmentNameMessage = pattern(
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
  '[-._a-zA-Z][-._a-zA-Z0-9]*',
  'my.env-name',
  'MY_ENV.NAME',
  'MyEnvName1',
);

/** The name of an environment variable before the rule was relaxed. */
export const strictEnvironmentName: NameRule = (value) => {
  const messages: string[] = [];
  if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(value)) messages.push(strictEnvironmentNameMessage);
  return [...messages, ...parentDirectory(value)];
};

/** The name of an environment variable by the relaxed rule, the default as of 1.32. */
export const environmentName: NameRule = (value) => {
  const messages: string[] = [];
  if (value === '') messages.push('environment variable name must be non-empty');
  if (!/^[\x20-\x3c\x3e-\x7e]*$/.test(value)) {
    messages.push(
      "a valid environment variable name must consist only of printable ASCII characters other than '='",
    );
  }
  return messages;
};

/** The name of a port of a container or service (IANA service name). */
export const portName: NameRule = (value) => {
  const messages: string[] = [];
  if (exceedsBytes(value, 15)) messages.push(maxLength(15));
  if (!/^[-a-z0-9]+$/.test(value)) {
    messages.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(value)) messages.push('must contain at least one letter (a-z)');
  if (value.includes('--')) messages.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) {
    messages.push('must not begin or end with a hyphen');
  }
  return messages;
};

/** A name that is valid in a URL path, as for RBAC kinds. */
export const pathSegment: NameRule = (value) => {
  if (value === '.' || value === '..') return [`may not be '${value}'`];
  return ['/', '%']
    .filter((character) => value.includes(character))
    .map((character) => `may not contain '${character}'`);
};

/** Validates that an integer is within bounds, both inclusive. */
export function inRange(value: number, low: number, high: number): readonly string[] {
  return value >= low && value <= high ? [] : [`must be between ${low} and ${high}, inclusive`];
}

/** Returns the field errors of a value that violates a rule. */
export function ruleErrors(field: string, value: string, rule: NameRule): FieldError[] {
  return rule(value).map((message) => invalid(field, value, message));
}

const pathFormat = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";

/** Validates a domain and a path, such as the name of a signer: `example.com/path`. */
export function domainPrefixedPath(field: string, value: string): FieldError[] {
  if (value === '') return [required(field)];
  const slash = value.indexOf('/');
  const [host, path] = [value.slice(0, Math.max(slash, 0)), value.slice(slash + 1)];
  if (host === '' || path === '') {
    return [invalid(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const errors = ruleErrors(field, host, dnsSubdomain);
  if (/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(path)) return errors;
  const detail = `Invalid path (regex used for validation is '${pathFormat}')`;
  return [...errors, invalid(field, path, detail)];
}

const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const nameLengthMax = 63;

/**
 * Returns `base` truncated to 58 bytes, followed by five random characters of kube-apiserver's
 * alphabet (META-1).
 */
export function generateName(base: string): string {
  const baseMax = nameLengthMax - suffixLength;
  let name = base.slice(0, baseMax);
  while (exceedsBytes(name, baseMax)) name = [...name].slice(0, -1).join('');
  for (let count = 0; count < suffixLength; count += 1)
    name += alphabet[randomBelow(alphabet.length)];
  return name;
}
