import { readFileSync } from 'node:fs';
import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { toYaml } from '../client/yaml.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { parsePath, parseTemplate, renderTemplate, selectPath, showValue } from './jsonpath.ts';
import { objectLabel } from './objects.ts';
import { printJson } from './pretty-json.ts';
import type { Session } from './session.ts';
import { sortMaps } from './sorted-maps.ts';
import { alignLines } from './table.ts';

export const outputFlags: readonly FlagSpec[] = [
  {
    name: 'output',
    short: 'o',
    type: 'text',
    help: 'json, yaml, name, wide, jsonpath=…, jsonpath-file=…, custom-columns=…, custom-columns-file=…',
  },
  { name: 'show-managed-fields', type: 'boolean', help: 'Keep managedFields in json and yaml' },
];

/** Prints a whole object (or List) in a format other than the table. */
export type Printer = (object: JsonObject) => string;

/** The printer `-o` asks for; undefined for the table's own formats. Throws CliError. */
export function printerOf(session: Session): Printer | undefined {
  const format = session.flags.text('output');
  if (format === undefined || format === '' || format === 'wide') return undefined;
  const keep = session.flags.boolean('show-managed-fields');
  const clean = (object: JsonObject) => (keep ? object : withoutManagedFields(object));
  if (format === 'json') return (object) => jsonText(clean(object));
  if (format === 'yaml') return (object) => toYaml(clean(object));
  if (format === 'name') return namePrinter;
  return templatePrinter(session, format);
}

/** JSON as kubectl prints it: members in order, four spaces a level. */
function jsonText(object: JsonObject): string {
  return `${printJson(sortMaps(object, undefined), '    ')}\n`;
}

function namePrinter(object: JsonObject): string {
  return itemsOf(object)
    .map((one) => `${objectLabel(one)}\n`)
    .join('');
}

function templatePrinter(session: Session, format: string): Printer {
  const equals = format.indexOf('=');
  const name = equals < 0 ? format : format.slice(0, equals);
  const value = equals < 0 ? '' : format.slice(equals + 1);
  const fromFile = () => readFileSync(session.path(value), 'utf8');
  switch (name) {
    case 'jsonpath':
    case 'jsonpath-file': {
      const source = name === 'jsonpath' ? value : fromFile();
      const template = parseTemplate(source.includes('{') ? source : `{${source}}`);
      return (object) => renderTemplate(template, object);
    }
    case 'custom-columns':
      return columnsPrinter(session, value);
    case 'custom-columns-file':
      return columnsPrinter(session, columnsOfFile(fromFile()));
    default:
      throw new CliError(
        `unable to match a printer suitable for the output format ${JSON.stringify(format)}, ` +
          'allowed formats are: custom-columns,custom-columns-file,json,jsonpath,jsonpath-file,name,wide,yaml',
      );
  }
}

/** A file of two lines, the headings and the paths, as the one line that says the same. */
function columnsOfFile(text: string): string {
  const [heads = [], paths = [], ...more] = text
    .split('\n')
    .map((line) => line.split(/[ \t\r]+/).filter((word) => word !== ''))
    .filter((words) => words.length > 0);
  if (heads.length === 0 || heads.length !== paths.length || more.length > 0) {
    throw new CliError(
      `number of headers (${heads.length}) and field specifications (${paths.length}) don't match`,
    );
  }
  return heads.map((head, index) => `${head}:${paths[index]}`).join(',');
}

function columnsPrinter(session: Session, spec: string): Printer {
  const columns = spec.split(',').map((column) => {
    const colon = column.indexOf(':');
    if (colon < 0) {
      throw new CliError(
        `unexpected custom-columns spec: ${column}, expected <header>:<json-path-expr>`,
      );
    }
    const path = column.slice(colon + 1).replace(/^\{(.*)\}$/, '$1');
    return { header: column.slice(0, colon), steps: parsePath(path) };
  });
  return (object) => {
    const rows = itemsOf(object).map((item) =>
      columns.map(({ steps }) => {
        const values = selectPath(steps, item);
        return values.length === 0 ? '<none>' : values.map(showValue).join(',');
      }),
    );
    const head = columns.map((column) => column.header);
    return alignLines(session.flags.boolean('no-headers') ? rows : [head, ...rows]);
  };
}

/** The members of a list, or the object itself. */
export function itemsOf(object: JsonObject): JsonObject[] {
  const isList = Array.isArray(object.items) && String(object.kind).endsWith('List');
  return isList ? (object.items as JsonValue[]).filter(isObject) : [object];
}

function withoutManagedFields(object: JsonObject): JsonObject {
  if (Array.isArray(object.items)) {
    const items = object.items.map((one) => (isObject(one) ? withoutManagedFields(one) : one));
    return { ...object, items };
  }
  if (!isObject(object.metadata) || object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Prints what a write gave: in the format of `-o`, else `<kind>/<name> <what>`. */
export function reportObject(session: Session, object: JsonObject, what: string): void {
  const printer = printerOf(session);
  session.io.out(printer === undefined ? `${objectLabel(object)} ${what}\n` : printer(object));
}
