import { toYaml } from '@wheelhouse/client';
import { cut, goSyntax, isObject, type JsonObject, type JsonPath } from '@wheelhouse/machinery';
import type { CommandFlag } from '../command.ts';
import type { FlagSpec } from '../flags.ts';
import { runGoTemplate, TemplateRunError } from '../go-template/exec.ts';
import { functionNames } from '../go-template/functions.ts';
import { TemplateError } from '../go-template/lex.ts';
import { parseGoTemplate, type Templates } from '../go-template/parse.ts';
import { formatJson } from '../go-template/values.ts';
import { CliError } from '../io.ts';
import { objectLabel } from '../objects.ts';
import type { Session } from '../session.ts';
import { compactJson, printJson } from './go-json.ts';
import {
  completePath,
  evaluateTemplate,
  parseTemplate,
  printValues,
  printValuesAsJson,
} from './jsonpath.ts';
import { alignLines } from './table.ts';

/** Flags for the format of printed objects, for commands that check the format themselves. */
export const uncheckedOutputFlags: readonly FlagSpec[] = [
  {
    name: 'output',
    short: 'o',
    type: 'text',
    help: 'json, yaml, name, go-template=…, jsonpath=… (or …-file=…), in get also wide, custom-columns=…',
  },
  { name: 'template', type: 'text', help: 'The template for -o, or its file' },
  {
    name: 'allow-missing-template-keys',
    type: 'boolean',
    help: 'Ignore fields of a template that an object lacks (default)',
  },
  { name: 'show-managed-fields', type: 'boolean', help: 'Keep managedFields in json and yaml' },
];

/** Flags for the format of printed objects. */
export const outputFlags: readonly CommandFlag[] = uncheckedOutputFlags.map((flag) =>
  flag.type === 'text' ? { ...flag, check: (session) => void printerOf(session) } : flag,
);

const objectFormats = [
  'go-template',
  'go-template-file',
  'json',
  'jsonpath',
  'jsonpath-as-json',
  'jsonpath-file',
  'name',
  'template',
  'templatefile',
  'yaml',
];
/** Formats whose names may be written in upper case. */
const plainFormats = ['json', 'yaml', 'name'];
const rowFormats = ['custom-columns', 'custom-columns-file', 'wide'];

/** Formats an object or a List. */
export type Printer = (object: JsonObject) => string;

/** The printers of sessions: the file of a template may be a pipe, which can be read only once. */
const printers = new WeakMap<Session, { readonly printer: Printer | undefined }>();

/**
 * Returns the printer for `-o`, or undefined for the command's default format. Throws CliError.
 * @param options.rows whether the command prints tables and thus supports formats with columns
 */
export function printerOf(
  session: Session,
  options: { readonly rows?: boolean } = {},
): Printer | undefined {
  const format = session.flags.text('output') ?? '';
  const made = printers.get(session) ?? { printer: printerFor(session, { ...options, format }) };
  printers.set(session, made);
  return made.printer;
}

/** Returns the printer for `-o`, or for a default format. Throws CliError. */
export function printerOr(session: Session, defaultFormat: 'json' | 'yaml'): Printer {
  const format = session.flags.text('output') || defaultFormat;
  const printer = printerFor(session, { format });
  if (printer !== undefined) return printer;
  throw new CliError(`unable to match a printer suitable for the output format "${format}"`);
}

function printerFor(
  session: Session,
  { rows = false, format: givenFormat }: { readonly rows?: boolean; readonly format: string },
): Printer | undefined {
  const template = session.flags.text('template') ?? '';
  const written = givenFormat === '' && template !== '' ? 'go-template' : givenFormat;
  const format = plainFormats.find((name) => name === written.toLowerCase()) ?? written;
  if (format === '' || (format === 'wide' && rows)) return undefined;
  const keep = session.flags.boolean('show-managed-fields');
  const clean = (object: JsonObject) => (keep ? object : withoutManagedFields(object));
  if (format === 'json') return (object) => jsonText(clean(object));
  if (format === 'yaml') {
    return (object) => `${session.countDocument() > 1 ? '---\n' : ''}${toYaml(clean(object))}`;
  }
  if (format === 'name') return namePrinter;
  return templatePrinter(session, { format, rows, template });
}

/** Formats JSON like kubectl: sorted members, and an indent of four. */
function jsonText(object: JsonObject): string {
  return `${printJson(object, { step: '    ', order: 'sorted' })}\n`;
}

/** Returns the printer of JSON with the server's order of members. */
export function orderedJson({ flags }: Session): Printer {
  const clean = flags.boolean('show-managed-fields')
    ? (same: JsonObject) => same
    : withoutManagedFields;
  return (object) => `${printJson(clean(object), { step: '    ' })}\n`;
}

/** Prints objects as a List, whose own members are in kubectl's order. */
export function printList(session: Session, objects: readonly JsonObject[]): void {
  const list = { kind: 'List', apiVersion: 'v1', metadata: {}, items: [...objects] };
  if (session.flags.text('output') !== 'json') {
    session.io.out(printerOf(session)?.(list) ?? '');
    return;
  }
  const keep = session.flags.boolean('show-managed-fields');
  const shown = keep ? list : withoutManagedFields(list);
  session.io.out(`${printJson(shown, { step: '    ', order: 'sorted below' })}\n`);
}

function namePrinter(object: JsonObject): string {
  return itemsOf(object)
    .map((item) => `${objectLabel(item)}\n`)
    .join('');
}

function templatePrinter(
  session: Session,
  options: { readonly format: string; readonly rows: boolean; readonly template: string },
): Printer {
  const { format, rows } = options;
  const [name, inline] = options.template === '' ? cut(format, '=') : [format];
  const value = inline ?? options.template;
  const allowed = [...(rows ? rowFormats : []), ...objectFormats].sort();
  const isSupported = allowed.includes(name) && !['json', 'yaml', 'name', 'wide'].includes(name);
  if (!isSupported) {
    throw new CliError(
      `unable to match a printer suitable for the output format ${JSON.stringify(format)}, ` +
        `allowed formats are: ${allowed.join(',')}`,
    );
  }
  const isColumns = name.startsWith('custom-columns');
  if (value === '') {
    const formatName = isColumns ? 'custom-columns' : 'template';
    const missing = isColumns ? 'no custom columns given' : 'no template given';
    throw new CliError(`${formatName} format specified but ${missing}`);
  }
  const isFile = name.endsWith('file');
  const source = isFile ? templateFile(session, { file: value, isColumns }) : value;
  if (isColumns) {
    return columnsPrinter(session, isFile ? columnsFromFile(source) : columnsFromText(source));
  }
  if (!name.startsWith('jsonpath')) return goTemplatePrinter(session, source);
  return pathPrinter(session, { source, asJson: name === 'jsonpath-as-json' });
}

function templateFile(
  session: Session,
  { file, isColumns }: { readonly file: string; readonly isColumns: boolean },
): string {
  const subject = isColumns ? 'template' : '--template';
  return session
    .readFile(file, (reason) => `error reading ${subject} ${file}, ${reason}\n`)
    .toString();
}

function goTemplatePrinter(session: Session, source: string): Printer {
  const strict = !session.flags.boolean('allow-missing-template-keys', true);
  try {
    const template = parseGoTemplate(source, functionNames);
    return (object) => renderGoTemplate(session, { template, object, strict });
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw new CliError(`error parsing template ${source}, ${error.message}\n`);
  }
}

function renderGoTemplate(
  session: Session,
  options: { readonly template: Templates; readonly object: JsonObject; readonly strict: boolean },
): string {
  const { template, object, strict } = options;
  try {
    return runGoTemplate(template, object, { strict });
  } catch (error) {
    if (!(error instanceof TemplateRunError)) throw error;
    const data = hasSecrets(object)
      ? ''
      : `\traw data was:\n\t\t${compactJson(object)}\n` +
        `\tobject given to template engine was:\n\t\t${formatJson(object)}\n`;
    session.io.out(
      `${error.written}Error executing template: ${error.message}. ` +
        'Printing more information for debugging the template:\n' +
        `\ttemplate was:\n\t\t${template.source}\n${data}\n`,
    );
    throw new CliError(
      `error executing template ${JSON.stringify(template.source)}: ${error.message}`,
    );
  }
}

function pathPrinter(
  session: Session,
  { source, asJson }: { readonly source: string; readonly asJson: boolean },
): Printer {
  const isStrict = !session.flags.boolean('allow-missing-template-keys', true);
  const template = parsePathTemplate(source);
  const print = asJson ? printValuesAsJson : printValues;
  return (object) => {
    try {
      const missing = isStrict ? 'is an error' : 'is empty';
      return print(
        evaluateTemplate(template, object, { missing, hidesValues: hasSecrets(object) }),
      );
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      throw pathError({ text: source, problem: error.message, object });
    }
  };
}

/** The error of a JSONPath template, with what explains it. Contains no Secret. */
function pathError(failed: {
  readonly text: string;
  readonly problem: string;
  readonly object: JsonObject;
}): CliError {
  const { text, problem, object } = failed;
  const data = hasSecrets(object)
    ? ''
    : `\tobject given to jsonpath engine was:\n\t\t${goSyntax(object, { max: Number.POSITIVE_INFINITY })}\n`;
  return new CliError(
    `error executing jsonpath ${JSON.stringify(text)}: Error executing template: ${problem}. ` +
      'Printing more information for debugging the template:\n' +
      `\ttemplate was:\n\t\t${text}\n${data}\n\n`,
  );
}

/** Whether an object is a Secret or lists one, which no error message may show. */
const hasSecrets = (object: JsonObject): boolean =>
  itemsOf(object).some((item) => item.kind === 'Secret');

function parsePathTemplate(source: string): JsonPath {
  try {
    return parseTemplate(source);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(`error parsing jsonpath ${source}, ${error.message}\n`);
  }
}

/** A column of `custom-columns`. */
interface Column {
  readonly header: string;
  /** A complete path; empty for a column without values. */
  readonly path: string;
}

/** Parses a file with a line of headings and a line of paths. Throws CliError. */
function columnsFromFile(text: string): Column[] {
  const lines = text.replace(/\n$/, '').split('\n');
  const missing = text === '' ? 'header' : lines[1] === undefined ? 'spec' : undefined;
  if (missing !== undefined) {
    throw new CliError(
      `invalid template, missing ${missing} line. Expected format is one line of space ` +
        'separated headers, one line of space separated column specs.',
    );
  }
  const [headers = [], paths = []] = lines.map((line) =>
    line.split(/\s+/).filter((word) => word !== ''),
  );
  if (headers.length !== paths.length) {
    throw new CliError(
      `number of headers (${headers.length}) and field specifications (${paths.length}) ` +
        "don't match",
    );
  }
  return headers.map((header, index) => ({ header, path: completePath(paths[index] ?? '') }));
}

/** Parses the value of `custom-columns`. Throws CliError. */
function columnsFromText(text: string): Column[] {
  return text.split(',').map((column) => {
    const [header, path] = cut(column, ':');
    if (path === undefined) {
      throw new CliError(
        `unexpected custom-columns spec: ${column}, expected <header>:<json-path-expr>`,
      );
    }
    return { header, path: completePath(path) };
  });
}

/** Prints the rows before one whose values cannot be found, and throws a CliError for that. */
function columnsPrinter(session: Session, columns: readonly Column[]): Printer {
  return (object) => {
    const lines: string[][] = [];
    if (!session.flags.boolean('no-headers')) lines.push(columns.map(({ header }) => header));
    try {
      const paths = columns.map(({ path }) => parseTemplate(path));
      for (const item of itemsOf(object)) lines.push(paths.map((path) => columnText(path, item)));
      return alignLines(lines);
    } catch (error) {
      session.io.out(alignLines(lines));
      throw error;
    }
  };
}

function columnText(path: JsonPath, item: JsonObject): string {
  const results = evaluateTemplate(path, item, { hidesValues: hasSecrets(item) });
  const texts = results.flat().map(formatJson);
  return ((results[0] ?? []).length === 0 ? ['<none>', ...texts] : texts).join(',');
}

/** Returns the items of a list, or the object itself. */
function itemsOf(object: JsonObject): JsonObject[] {
  const { items } = object;
  const isList = String(object.kind).endsWith('List');
  return isList && Array.isArray(items) ? items.filter(isObject) : [object];
}

/** Returns an object, or a list of objects, without managed fields. */
export function withoutManagedFields(object: JsonObject): JsonObject {
  if (Array.isArray(object.items)) {
    const items = object.items.map((item) => (isObject(item) ? withoutManagedFields(item) : item));
    return { ...object, items };
  }
  if (!isObject(object.metadata) || object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Reports a written object in the format of `-o`, or as `<kind>/<name> <verb>`. */
export function reportObject(session: Session, object: JsonObject, what: string): void {
  const printer = printerOf(session);
  session.io.out(printer === undefined ? `${objectLabel(object)} ${what}\n` : printer(object));
}
