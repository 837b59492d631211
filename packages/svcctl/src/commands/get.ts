import { ApiError, type ApiRequest, statusError, toYaml } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { checkRawPath } from '../argument-values.ts';
import type { Command } from '../command.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst, usageError } from '../io.ts';
import { hasManifests } from '../manifests.ts';
import { namespaceOf, objectAt, objectLabel, resourceLabel, textAt } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { lineDiff } from '../output/line-diff.ts';
import { type Printer, printerOf, uncheckedOutputFlags } from '../output/output.ts';
import { sortRows } from '../output/sort-by.ts';
import {
  alignLines,
  type CellStyle,
  noHeadersFlag,
  type ObjectTable,
  type TableOptions,
  tableAccept,
  tableLines,
  tableOf,
  tableStyle,
} from '../output/table.ts';
import {
  chunkSizeFlag,
  explainingList,
  fetchTarget,
  isSelected,
  itemsWithType,
  pageLimit,
  readNamed,
  selectionFlags,
  selectorQuery,
  selectTargets,
  type Target,
  targetPath,
  typesHint,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { type Paint, paintOf } from '../terminal.ts';
import { watch } from '../watch.ts';
import { printBody } from './streams/exec.ts';

/** Prints the changes of a watch (`get -w -o diff`). */
interface DiffPrinter {
  /** Records an object's initial state; prints nothing. */
  record(object: JsonObject): void;
  /** Prints the changes of an event. */
  print(type: string, object: JsonObject): void;
}

const eventVerbs: Readonly<Record<string, string | undefined>> = {
  ADDED: 'added',
  MODIFIED: 'modified',
  DELETED: 'deleted',
};

/**
 * Prints each change as a line that names the object and the event, followed by a unified diff of
 * the YAML. The diff omits the resourceVersion, which always changes, and managed fields unless
 * `--show-managed-fields` is set.
 */
function diffPrinter(session: Session): DiffPrinter {
  const states = new Map<string, string>();
  const paint = paintOf(session.io);
  const withManaged = session.flags.boolean('show-managed-fields');
  const keyOf = (object: JsonObject) => `${namespaceOf(object)}/${objectLabel(object)}`;
  return {
    record: (object) => states.set(keyOf(object), yamlForDiff(object, withManaged)),
    print(type, object) {
      const key = keyOf(object);
      const before = states.get(key) ?? '';
      const after = type === 'DELETED' ? '' : yamlForDiff(object, withManaged);
      if (type === 'DELETED') states.delete(key);
      else states.set(key, after);
      const namespace = namespaceOf(object);
      const location = session.flags.boolean('all-namespaces') ? ` in ${namespace}` : '';
      const version = textAt(object, 'metadata', 'resourceVersion');
      const title = `${objectLabel(object)}${location} ${eventVerbs[type] ?? type} at version ${version}`;
      const lines = type === 'DELETED' ? [] : lineDiff(before, after);
      const text = [paint(title, 'bold'), ...lines.map((line) => paintLine(line, paint))];
      session.io.out(`${text.join('\n')}\n`);
    },
  };
}

function paintLine(line: string, paint: Paint): string {
  if (line.startsWith('@@')) return paint(line, 'cyan');
  if (line.startsWith('+')) return paint(line, 'green');
  return line.startsWith('-') ? paint(line, 'red') : line;
}

function yamlForDiff(object: JsonObject, withManaged: boolean): string {
  const { resourceVersion: _, managedFields, ...metadata } = objectAt(object, 'metadata');
  const shown =
    withManaged && managedFields !== undefined ? { ...metadata, managedFields } : metadata;
  return toYaml({ ...object, metadata: shown });
}

/**
 * Prints objects, by default as the server's tables. `--watch` continues with changes; `--raw`
 * prints the answer to any path.
 */
export const getCommand: Command = {
  name: 'get',
  suggestedFor: ['list', 'ps'],
  completes: 'objects',
  summary: 'Display one or many resources',
  usage: '(TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...)',
  flags: [
    ...selectionFlags,
    ...uncheckedOutputFlags,
    {
      name: 'watch',
      short: 'w',
      type: 'boolean',
      help: 'Watch after listing; -o diff prints the changes',
    },
    { name: 'watch-only', type: 'boolean', help: 'Watch for changes only' },
    { name: 'output-watch-events', type: 'boolean', help: 'Show the type of each watch event' },
    { name: 'show-labels', type: 'boolean', help: 'Show all labels as the last column' },
    { name: 'show-kind', type: 'boolean', help: 'Prefix each name with its kind' },
    { name: 'label-columns', short: 'L', type: 'items', help: 'Labels to show as columns' },
    noHeadersFlag,
    { name: 'ignore-not-found', type: 'boolean', help: 'Ignore objects that do not exist' },
    { name: 'sort-by', type: 'text', help: 'Sort by the field at this JSONPath' },
    chunkSizeFlag,
    { name: 'raw', type: 'text', help: 'Raw path to fetch' },
    {
      name: 'server-print',
      type: 'boolean',
      help: "Print the server's columns (default), or only NAME and AGE",
    },
    { name: 'subresource', type: 'text', help: 'Subresource to show, such as status' },
  ],
  async run(session, args) {
    const raw = session.flags.text('raw') ?? '';
    if (raw !== '' && args.length > 0) {
      throw new CliError('arguments may not be passed when --raw is specified');
    }
    if (raw === '') checkTyped(session, args);
    checkFlags(session, raw);
    if (raw !== '') {
      checkRawPath(raw);
      const { signal } = session.deadline(session.requestTimeoutMs || undefined);
      const printing = printBody(session, { path: raw, accept: '*/*', signal });
      await printing.catch((error: unknown) => {
        throw signal.aborted ? signal.reason : error;
      });
      return 0;
    }
    const targets = await selectTargets(session, args);
    if (session.flags.has('subresource') && targets.some((target) => target.name === undefined)) {
      throw new CliError('subresource cannot be used when bulk resources are specified');
    }
    if (session.flags.boolean('watch') || session.flags.boolean('watch-only')) {
      return watchTargets(session, targets);
    }
    if (printsDiffs(session)) throw new CliError('-o diff requires --watch');
    return printTargets(session, targets);
  },
};

/** Throws CliError for conflicting flags. */
function checkFlags({ flags }: Session, raw: string): void {
  const output = flags.text('output') ?? '';
  const watches = flags.boolean('watch') || flags.boolean('watch-only');
  const filters = watches || (flags.text('selector') ?? '') !== '';
  throwFirst([
    raw !== '' &&
      filters &&
      '--raw may not be specified with other flags that filter the server request or alter the output',
    raw !== '' && output !== '' && '--raw and --output are mutually exclusive',
    flags.boolean('show-labels') &&
      output !== '' &&
      output !== 'wide' &&
      `--show-labels option cannot be used with ${output} printer`,
    flags.boolean('output-watch-events') &&
      !watches &&
      '--output-watch-events option can only be used with --watch or --watch-only',
  ]);
}

/** Throws a CliError that refers to help if the command line names neither a type nor a file. */
function checkTyped(session: Session, args: readonly string[]): void {
  const { flags, io } = session;
  const watches = flags.boolean('watch') || flags.boolean('watch-only');
  if (args.length > 0 || hasManifests(session) || watches) return;
  io.err(`You must specify the type of resource to get. ${typesHint}\n\n`);
  throw usageError(
    'get',
    'Required resource not specified.\nUse "svcctl explain <resource>" for a detailed description ' +
      'of that resource (e.g. svcctl explain pods).',
  );
}

function printTargets(session: Session, targets: readonly Target[]): Promise<number> {
  const printer = printerOf(session, { rows: true });
  return printer === undefined
    ? printTables(session, targets)
    : printObjects(session, { targets, printer });
}

/** Whether `-o diff` prints changes instead of objects. */
const printsDiffs = ({ flags }: Session): boolean => flags.text('output') === 'diff';

const isIgnoredNotFound = (session: Session, error: unknown): boolean =>
  session.flags.boolean('ignore-not-found') && error instanceof ApiError && error.code === 404;

async function printObjects(
  session: Session,
  { targets, printer }: { targets: readonly Target[]; printer: Printer },
): Promise<number> {
  const objects: JsonObject[] = [];
  const failures = await visitFound(session, targets, async (target) => {
    objects.push(...(await fetchTarget(session, target)));
  });
  const [only] = objects;
  const [target] = targets;
  const isSingle =
    targets.length === 1 &&
    target?.name !== undefined &&
    (only !== undefined || !target.liveSelector);
  if (isSingle) {
    if (only !== undefined) session.io.out(printer(only));
  } else if (objects.length > 0 || !session.flags.boolean('ignore-not-found')) {
    const metadata = { resourceVersion: '' };
    const items = [...applySortBy(session, objects, (object) => object)];
    session.io.out(printer({ apiVersion: 'v1', items, kind: 'List', metadata }));
  }
  return reportFailures(session.io, failures);
}

/** Visits each target. Resolves with the failures, without objects that `--ignore-not-found` skips. */
async function visitFound(
  session: Session,
  targets: readonly Target[],
  visit: (target: Target) => Promise<void>,
): Promise<unknown[]> {
  const failures = await visitEach(session.io, targets, visit);
  return failures.filter((error) => !isIgnoredNotFound(session, error));
}

/** Sorts rows by `--sort-by`, if set. */
function applySortBy<T>(
  session: Session,
  rows: readonly T[],
  objectOf: (row: T) => JsonObject,
): readonly T[] {
  const path = session.flags.text('sort-by') ?? '';
  return isSorted(session) ? sortRows(rows, { path, objectOf }) : rows;
}

/** Sorts a table by `--sort-by`. A single row needs no path that its object has. */
const sortedTable = (session: Session, { columns, rows }: ObjectTable): ObjectTable => ({
  columns,
  rows: rows.length > 1 ? applySortBy(session, rows, (row) => row.object) : rows,
});

interface Block {
  readonly target: Target;
  readonly table: ObjectTable;
}

/** Prints a table for each sequence of targets in the same collection. */
async function printTables(session: Session, targets: readonly Target[]): Promise<number> {
  const read: Block[] = [];
  const failures = await visitFound(session, targets, async (target) => {
    read.push({ target, table: await fetchTable(session, target) });
  });
  const blocks: Block[] = [];
  for (const { target, table } of read) {
    const last = blocks.at(-1);
    if (last !== undefined && last.target.resource === target.resource) {
      const rows = [...last.table.rows, ...table.rows];
      blocks[blocks.length - 1] = { target, table: { columns: last.table.columns, rows } };
    } else if (table.rows.length > 0) {
      blocks.push({ target, table });
    }
  }
  if (blocks.length === 0 && failures.length === 0 && !session.flags.boolean('ignore-not-found')) {
    session.io.err(noResourcesText(session, targets));
  }
  const kinds = new Set(read.map(({ target }) => target.resource));
  const withKind = kinds.size > 1 || session.flags.boolean('show-kind');
  blocks.forEach(({ target, table }, index) => {
    const options = tableOptions(session, target);
    const labeledTable = withKind ? withKindPrefix(table, target) : table;
    const lines = tableLines(sortedTable(session, labeledTable), options);
    const style = styleOf(session, { ...options, columns: labeledTable.columns, rows: [] });
    const separator = index > 0 && options.headers ? '\n' : '';
    session.io.out(separator + alignLines(lines, [], style));
  });
  return reportFailures(session.io, failures);
}

/** The colors of a table, by its column titles. */
function styleOf(
  session: Session,
  table: TableOptions & ObjectTable & { readonly withEvents?: boolean },
): CellStyle {
  const [heading = []] = tableLines(
    { columns: table.columns, rows: [] },
    { ...table, headers: true },
  );
  const titles = table.withEvents === true ? ['EVENT', ...heading] : heading;
  return tableStyle(paintOf(session.io), { titles, headingCount: table.headers ? 1 : 0 });
}

/** Prefixes names with the kind from discovery, since objects in tables may lack theirs. */
function withKindPrefix(table: ObjectTable, target: Target): ObjectTable {
  const rows = table.rows.map((row) => ({
    cells: [`${resourceLabel(target.resource)}/${String(row.cells[0])}`, ...row.cells.slice(1)],
    object: row.object,
  }));
  return { columns: table.columns, rows };
}

function noResourcesText(session: Session, targets: readonly Target[]): string {
  const namespaced = targets.every((target) => target.resource.namespaced);
  const where =
    namespaced && !session.flags.boolean('all-namespaces')
      ? ` in ${session.namespace} namespace`
      : '';
  return `No resources found${where}${where === '' ? '' : '.'}\n`;
}

function tableOptions(session: Session, target: Target): TableOptions {
  const { flags } = session;
  return {
    wide: flags.text('output') === 'wide',
    withNamespace: flags.boolean('all-namespaces') && target.resource.namespaced,
    withLabels: flags.boolean('show-labels'),
    labelColumns: flags.list('label-columns'),
    headers: !flags.boolean('no-headers'),
  };
}

const isSorted = ({ flags }: Session): boolean => (flags.text('sort-by') ?? '') !== '';

/** The Accept header: tables, or objects with `--server-print=false`. */
const acceptOf = ({ flags }: Session): string =>
  flags.boolean('server-print', true) ? tableAccept : 'application/json';

/** The query parameter for tables with whole objects, which sorting reads. */
const includeQuery = (session: Session): Record<string, string | undefined> => ({
  includeObject: isSorted(session) && acceptOf(session) === tableAccept ? 'Object' : undefined,
});

async function fetchTable(session: Session, target: Target): Promise<ObjectTable> {
  const path = targetPath(target, session.flags.text('subresource') ?? '');
  const accept = acceptOf(session);
  if (target.name !== undefined) {
    const read = () => session.client.send({ path, accept });
    const { object } = await readNamed(session, target, read);
    const table = tableOf(object, session.clock.now());
    return { ...table, rows: table.rows.filter((row) => isSelected(target, row.object)) };
  }
  // Sorting needs all objects anyway.
  const limit = isSorted(session) ? undefined : pageLimit(session);
  let table: ObjectTable | undefined;
  let token: string | undefined;
  do {
    const selectors = { ...selectorQuery(session), ...includeQuery(session) };
    const query = { ...selectors, limit, continue: token };
    const { object } = await explainingList(session, target, () =>
      session.client.send({ path, query, accept }),
    );
    const page = tableOf(object, session.clock.now());
    table = table === undefined ? page : { ...table, rows: [...table.rows, ...page.rows] };
    token = textAt(object, 'metadata', 'continue');
  } while (token !== '');
  return table;
}

/** Lists and then watches a collection or a single object. */
async function watchTargets(session: Session, targets: readonly Target[]): Promise<number> {
  const target = await onlyTarget(session, targets);
  warnUnsortedWatch(session);
  const collection = targetPath({ ...target, name: undefined });
  const selectors = selectorQuery(session);
  const fields = [
    ...(target.name === undefined ? [] : [`metadata.name=${target.name}`]),
    ...(selectors.fieldSelector === undefined ? [] : [selectors.fieldSelector]),
  ];
  const query = {
    labelSelector: selectors.labelSelector,
    fieldSelector: fields.length === 0 ? undefined : fields.join(','),
  };
  const sink = watchSink(session, target);
  const listing =
    target.name === undefined
      ? { path: collection, query: { ...query, ...includeQuery(session) } }
      : { path: targetPath(target) };
  const read = () => session.client.send({ ...listing, accept: sink.accept });
  const listed = await (target.name === undefined ? read() : readNamed(session, target, read));
  if (!session.flags.boolean('watch-only') || printsDiffs(session)) sink.list(listed.object);
  const listedVersion = versionOf(listed.object);
  // The server may no longer know the changes since an object was last written.
  const isObject = target.name !== undefined;
  const resourceVersion = isObject ? '0' : listedVersion;
  const request = { path: collection, query: { ...query, resourceVersion } };
  await followEvents(session, request, {
    ...sink,
    event(type, object) {
      // The watch of an object begins with its state, which has been printed.
      if (isObject && type === 'ADDED' && versionOf(object) === listedVersion) return;
      sink.event(type, object);
    },
  });
  return 0;
}

/** The resourceVersion of a list, an object, or a table. */
const versionOf = (body: JsonObject): string => textAt(body, 'metadata', 'resourceVersion');

/** Returns the only target of a watch. Rejects with CliError or ApiError if there are others. */
async function onlyTarget(session: Session, targets: readonly Target[]): Promise<Target> {
  const [target, ...others] = targets;
  if (target !== undefined && others.length === 0) return target;
  const types = new Set(targets.map(({ resource }) => resource));
  if (types.size > 1 && !hasManifests(session)) {
    throw new CliError('you may only specify a single resource type');
  }
  // An object that does not exist is the more helpful error.
  for (const each of targets) await fetchTarget(session, each);
  if (types.size === 1 && !session.flags.boolean('watch-only')) {
    await printTargets(session, targets);
  }
  if (!hasManifests(session)) {
    throw new CliError('you may only watch a single resource or type of resource at a time');
  }
  const found =
    types.size > 1 ? 'more than 1 resource was found' : `${targets.length} resources were found`;
  throw new CliError(
    `watch is only supported on individual resources and resource collections - ${found}`,
  );
}

function warnUnsortedWatch(session: Session): void {
  if (!isSorted(session)) return;
  const warning = session.flags.boolean('watch')
    ? '--watch requested, --sort-by will be ignored for watch events received'
    : '--watch-only requested, --sort-by will be ignored';
  session.io.err(`warning: ${warning}\n`);
}

/** The verbosity that reports the end of a watch by `--request-timeout`, as in kubectl. */
const watchEndVerbosity = 5;

/** Prints events until the watch ends or `--request-timeout` expires. */
async function followEvents(
  session: Session,
  request: Pick<ApiRequest, 'path' | 'query'>,
  sink: WatchSink,
): Promise<void> {
  const deadline = session.deadline(session.requestTimeoutMs || undefined);
  const { signal } = deadline;
  try {
    for await (const event of watch(session, { ...request, accept: sink.accept, signal })) {
      if (event.type === 'ERROR') throw statusError(event.object);
      if (event.type !== 'BOOKMARK') sink.event(event.type, event.object);
    }
  } catch (error) {
    if (!deadline.isOver()) throw error;
    if ((session.flags.integer('v') ?? 0) >= watchEndVerbosity) {
      session.io.err(
        'Unable to decode an event from the watch stream: context deadline exceeded\n',
      );
    }
  }
}

/** Formats an event of a watch: as a line of JSON, or by the name of its object. */
function eventText(
  { flags }: Session,
  event: { readonly type: string; readonly object: JsonObject; readonly printer: Printer },
): string {
  const { type, object, printer } = event;
  const format = flags.text('output');
  if (format === 'json') {
    return `{"type":${JSON.stringify(type)},"object":${compactJson(object)}}\n`;
  }
  return printer(format === 'name' ? object : { type, object });
}

interface WatchSink {
  readonly accept: string;
  list(body: JsonObject): void;
  event(type: string, object: JsonObject): void;
}

function watchSink(session: Session, target: Target): WatchSink {
  if (printsDiffs(session)) {
    const diffs = diffPrinter(session);
    return {
      accept: 'application/json',
      list: (body) => itemsWithType(body).forEach(diffs.record),
      event: diffs.print,
    };
  }
  const printer = printerOf(session, { rows: true });
  const withEvents = session.flags.boolean('output-watch-events');
  if (printer !== undefined) {
    const print = (type: string, object: JsonObject) =>
      session.io.out(withEvents ? eventText(session, { type, object, printer }) : printer(object));
    return {
      accept: 'application/json',
      list(body) {
        for (const item of itemsWithType(body)) print('ADDED', item);
      },
      event: print,
    };
  }
  // The longest type of an event is known; three spaces follow it.
  const widths: number[] = withEvents ? ['MODIFIED'.length + 3] : [];
  const base = tableOptions(session, target);
  let headers = base.headers;
  let columns: ObjectTable['columns'] = [];
  const print = (type: string, table: ObjectTable) => {
    // Only the first table of a watch has column definitions.
    if (table.columns.length > 0) columns = table.columns;
    const options = { ...base, headers };
    const completeTable = { columns, rows: table.rows };
    const labeledTable = session.flags.boolean('show-kind')
      ? withKindPrefix(completeTable, target)
      : completeTable;
    const lines = tableLines(labeledTable, options);
    const cells = withEvents
      ? lines.map((line, at) => [headers && at === 0 ? 'EVENT' : type, ...line])
      : lines;
    if (table.rows.length > 0) {
      const style = styleOf(session, { ...options, columns, rows: [], withEvents });
      session.io.out(alignLines(cells, widths, style));
      headers = false;
    }
  };
  const read = (body: JsonObject) => tableOf(body, session.clock.now());
  return {
    accept: acceptOf(session),
    list: (body) => print('ADDED', sortedTable(session, read(body))),
    event: (type, body) => print(type, read(body)),
  };
}
