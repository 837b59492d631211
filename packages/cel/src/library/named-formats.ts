import {
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  labelValue,
  type NameRule,
  qualifiedName,
} from '@wheelhouse/machinery';
import { formatCheck } from '@wheelhouse/schema';
import type { Library } from '../types/functions.ts';
import { List, Opaque, Optional, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';
import { parseTimestamp } from './time-text.ts';

const type = 'kubernetes.NamedFormat';
const none = new Optional();

/** Names that something is still put behind may end in a dash. */
const prefix =
  (rule: NameRule): NameRule =>
  (value) =>
    rule(value.endsWith('-') && value.length > 1 ? `${value.slice(0, -1)}a` : value);

const must =
  (isRight: (text: string) => boolean, message: string): NameRule =>
  (value) =>
    isRight(value) ? [] : [message];

const hexes = '[0-9a-fA-F]';
const uuid = new RegExp(`^${hexes}{8}-?${hexes}{4}-?${hexes}{4}-?${hexes}{4}-?${hexes}{12}$`);
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && parseTimestamp(`${text}T00:00:00Z`) !== undefined;
}

function isUri(text: string): boolean {
  return formatCheck('uri')?.(text) ?? true;
}

const formats: Readonly<Record<string, NameRule>> = {
  dns1123Label: dnsLabel,
  dns1123Subdomain: dnsSubdomain,
  dns1035Label,
  dns1123LabelPrefix: prefix(dnsLabel),
  dns1123SubdomainPrefix: prefix(dnsSubdomain),
  dns1035LabelPrefix: prefix(dns1035Label),
  qualifiedName,
  labelValue,
  uri: must(isUri, 'invalid URI'),
  uuid: must((text) => uuid.test(text), 'does not match the UUID format'),
  byte: must((text) => base64.test(text), 'invalid base64'),
  date: must(isDate, 'invalid date'),
  datetime: must((text) => parseTimestamp(text.toUpperCase()) !== undefined, 'invalid datetime'),
};

class NamedFormat extends Opaque<NameRule> {}

const values = new Map<string, NamedFormat>(
  Object.entries(formats).map(([name, value]) => [
    name,
    new NamedFormat({ type, value, key: name }),
  ]),
);

function ruleOf(format: Value | undefined): NameRule {
  if (!(format instanceof NamedFormat)) throw misfit(format, type);
  return format.value;
}

function validate([format, text]: readonly Value[]): Value {
  const messages = ruleOf(format)(asText(text));
  return messages.length === 0 ? none : new Optional(new List(messages));
}

/** Formats of texts by name. */
export const namedFormats: Library = [
  ...[...values].map(([name, value]) => [`format.${name}(): ${type}`, () => value] as const),
  [
    `format.named(string): optional_type(${type})`,
    ([name]) => new Optional(values.get(asText(name))),
  ],
  [`${type}.validate(string): optional_type(list(string))`, validate],
];
