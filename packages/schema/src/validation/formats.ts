import { isIPv6 } from 'node:net';
import { parseGoRequestUrl, parseIpAddress } from '@wheelhouse/machinery';
import { parseDurationFormat } from './duration-format.ts';
import { isEmailAddress } from './email-address.ts';

/** Whether a string has a format. */
export type FormatCheck = (text: string) => boolean;

const hex = '[0-9a-f]';
const uuidOf = (third: string, fourth: string) =>
  new RegExp(`^${hex}{8}-?${hex}{4}-?${third}-?${fourth}-?${hex}{12}$`, 'i');
const four = `${hex}{4}`;
const uuid = uuidOf(four, four);
const uuid3 = uuidOf(`3${hex}{3}`, four);
const uuid4 = uuidOf(`4${hex}{3}`, `[89ab]${hex}{3}`);
const uuid5 = uuidOf(`5${hex}{3}`, `[89ab]${hex}{3}`);

/** The formats that kube-apiserver checks, by their names without dashes. */
const checks: Readonly<Record<string, FormatCheck>> = {
  bsonobjectid: (text) => /^[0-9a-fA-F]{24}$/.test(text),
  byte: isBase64,
  cidr: isCidr,
  creditcard: isCreditCard,
  date: isDate,
  datetime: isDateTime,
  duration: (text) => typeof parseDurationFormat(text) === 'bigint',
  email: isEmailAddress,
  hexcolor: (text) => /^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/.test(text),
  hostname: isHostname,
  ipv4: (text) => text.includes('.') && parseIpAddress(text) !== undefined,
  ipv6: (text) => isIPv6(text) && !text.includes('%'),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  mac: isMac,
  password: () => true,
  rgbcolor: isRgbColor,
  ssn: (text) => /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text) && text.length === 11,
  uri: (text) => typeof parseGoRequestUrl(text) !== 'string',
  uuid: (text) => uuid.test(text),
  uuid3: (text) => uuid3.test(text),
  uuid4: (text) => uuid4.test(text),
  uuid5: (text) => uuid5.test(text),
};

/** Returns the check of a format; undefined if kube-apiserver does not check it. */
export function formatCheck(format: string): FormatCheck | undefined {
  const name = format.replaceAll('-', '');
  return Object.hasOwn(checks, name) ? checks[name] : undefined;
}

function isBase64(text: string): boolean {
  if (text === '' || text.length % 4 !== 0) return false;
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function isCidr(text: string): boolean {
  const slash = text.indexOf('/');
  if (slash < 0) return false;
  const [address, length] = [text.slice(0, slash), text.slice(slash + 1)];
  if (!/^\d{1,3}$/.test(length) || parseIpAddress(address) === undefined) return false;
  return Number(length) <= (address.includes(':') ? 128 : 32);
}

function isMac(text: string): boolean {
  const separator = /[:-]/.exec(text)?.[0];
  const parts = separator === undefined ? text.split('.') : text.split(separator);
  const [digits, counts] = separator === undefined ? [4, [3, 4, 10]] : [2, [6, 8, 20]];
  return (
    counts.includes(parts.length) &&
    parts.every((part) => part.length === digits && /^[0-9a-fA-F]+$/.test(part))
  );
}

/** The numbers of credit cards by issuer: their lengths and leading digits. */
const cardNumbers = [
  /^4\d{12}(?:\d{3})?$/,
  /^5[1-5]\d{14}$/,
  /^6(?:011|5\d\d)\d{12}$/,
  /^3[47]\d{13}$/,
  /^3(?:0[0-5]|[68]\d)\d{11}$/,
  /^(?:2131|1800|35\d{3})\d{11}$/,
];

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, '');
  if (!cardNumbers.some((form) => form.test(digits))) return false;
  let sum = 0;
  [...digits].reverse().forEach((digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    sum += value > 9 ? (value % 10) + 1 : value;
  });
  return sum % 10 === 0;
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '');
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const values = [...digits].map((digit) => (digit === 'X' ? 10 : Number(digit)));
  return values.reduce((sum, value, index) => sum + (index + 1) * value, 0) % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '');
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = [...digits].reduce((at, digit, index) => at + Number(digit) * (index % 2 ? 3 : 1), 0);
  return sum % 10 === 0;
}

function isRgbColor(text: string): boolean {
  const match = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text);
  return match?.slice(1).every((part) => !/^0\d/.test(part) && +part < 256) ?? false;
}

function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (match === null) return false;
  const [month, day] = [Number(match[2]), Number(match[3])];
  const last = new Date(0);
  last.setUTCFullYear(Number(match[1]), month, 0);
  return month >= 1 && month <= 12 && day >= 1 && day <= last.getUTCDate();
}

function isDateTime(text: string): boolean {
  const [date = '', time] = text.toLowerCase().split('t');
  if (time === undefined || !isDate(date)) return false;
  const match = /^(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)$/.exec(time);
  return match !== null && +match[1]! <= 23 && +match[2]! <= 59 && +match[3]! <= 59;
}

const label = '[a-zA-Z0-9\\p{S}\\p{L}]';
const inner = '[a-zA-Z0-9\\-\\p{S}\\p{L}]';
const singleName = `${label}(?:-?${label}{0,62})?`;
const dottedName = `(?:${label}(?:${inner}{0,61}${label})?\\.)+[a-zA-Z\\p{L}]{2,63}`;
const hostname = new RegExp(`^(?:${singleName}|${dottedName})$`, 'u');

function isHostname(text: string): boolean {
  if (Buffer.byteLength(text) > 255) return false;
  if (text.split('.').some((part) => Buffer.byteLength(part) > 63)) return false;
  return hostname.test(text);
}
