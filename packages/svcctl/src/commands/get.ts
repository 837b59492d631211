import { ApiError, type ApiRequest, statusError, watchEvents } from '@wheelhouse/client';
import { isObject, type JsonObject, systemClock } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { describeError } from '../errors.ts';
import { CliError } from '../io.ts';
import { resourceLabel, textAt } from '../objects.ts';
import { outputFlags, type Printer, printerOf } from '../output/output.ts';
import { sortRows } from '../output/sort-by.ts';
import {
  alignLines,
  type CellStyle,
  type ObjectTable,
  type TableOptions,
  tableAccept,
  tableLines,
  tableOf,
  tableStyle,
} from '../output/table.ts';
import { diffPrinter, listedObjects } from '../output/watch-diff.ts';
import {
  fetchTarget,
  selectionFlags,
  selectorQuery,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { paintOf } from '../terminal.ts';

export const getCommand: Command = {
  name: 'get',
  completes: 'objects',
  summary: 'Display one or many resources',
  usage: '(TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE/NAME ...)',
  flags: [
    ...selectionFlags,
    ...outputFlags,
    {
      name: 'watch',
      short: 'w',
      type: 'boolean',
      help: 'List, then watch; -o diff: print the changes',
    },
    { name: 'watch-only', type: 'boolean', help: 'Watch without listing first' },
    { name: 'output-watch-events', type: 'boolean', help: 'Show the type of each watch event' },
    { name: 'show-labels', type: 'boolean', help: 'Show all labels as the last column' },
    { name: 'show-kind', type: 'boolean', help: 'Show the kind before each name' },
    { name: 'label-columns', short: 'L', type: 'list', help: 'Labels to show as columns' },
    { name: 'no-headers', type: 'boolean', help: 'Leave the heading out' },
    { name: 'ignore-not-found', type: 'boolean', help: 'Absent objects are no error' },
    { name: 'sort-by', type: 'text', help: 'Order by the field at this JSONPath' },
    { name: 'chunk-size', type: 'text', help: 'Objects a page of a list holds' },
    { name: 'raw', type: 'text', help: 'Path to fetch as it is' },
    { name: 'server-print', type: 'boolean', help: 'Columns as the server has them (default)' },
    { name: 'subresource', type: 'text', help: 'Sub-resource to show: status, scale' },
  ],
  async run(session, args) {
    const raw = session.flags.text('raw');
    if (raw !== undefined) {
      session.io.out(await session.client.raw(raw));
      return 0;
    }
    const targets = await selectTargets(session, args);
    if (session.flags.has('subresource') && targets.some((one) => one.name === undefined)) {
      throw new CliError('subresource cannot be used when bulk resources are specified');
    }
    if (session.flags.boolean('watch') || session.flags.boolean('watch-only')) {
      return watchTargets(session, targets);
    }
    if (showsDiffs(session))
      throw new CliError('-o diff shows the changes of a watch: add --watch');
    const printer = printerOf(session, { rows: true });
    return printer === undefined
      ? printTables(session, targets)
      : printObjects(session, { targets, printer });
  },
};

/** `-o diff`: the changes that a watch brings, instead of the objects. */
const showsDiffs = ({ flags }: Session): boolean => flags.text('output') === 'diff';

const skips = (session: Session, error: unknown): boolean =>
  session.flags.boolean('ignore-not-found') && error instanceof ApiError && error.code === 404;

async function printObjects(
  session: Session,
  { targets, printer }: { targets: readonly Target[]; printer: Printer },
): Promise<number> {
  const objects: JsonObject[] = [];
  let exitCode = 0;
  for (const target of targets) {
    try {
      objects.push(...(await fetchTarget(session, target)));
    } catch (error) {
      if (skips(session, error)) continue;
      session.io.err(describeError(error).text);
      exitCode = 1;
    }
  }
  const [only] = objects;
  const single = targets.length === 1 && targets[0]!.name !== undefined;
  if (single) {
    if (only !== undefined) session.io.out(printer(only));
  } else if (objects.length > 0 || exitCode === 0) {
    const metadata = { resourceVersion: '' };
    const items = [...inOrder(session, objects, (object) => object)];
    session.io.out(printer({ apiVersion: 'v1', items, kind: 'List', metadata }));
  }
  return exitCode;
}

/** Rows as `--sort-by` wants them; as they are without it. */
function inOrder<T>(
  session: Session,
  rows: readonly T[],
  objectOf: (row: T) => JsonObject,
): readonly T[] {
  const path = session.flags.text('sort-by');
  return path === undefined || path === '' ? rows : sortRows(rows, { path, objectOf });
}

interface Block {
  readonly target: Target;
  readonly table: ObjectTable;
}

/** Gathers neighbouring names of one collection, which print as one table. */
async function printTables(session: Session, targets: readonly Target[]): Promise<number> {
  const blocks: Block[] = [];
  let exitCode = 0;
  for (const target of targets) {
    try {
      const table = await fetchTable(session, target);
      const last = blocks.at(-1);
      if (last !== undefined && last.target.resource === target.resource) {
        const rows = [...last.table.rows, ...table.rows];
        blocks[blocks.length - 1] = { target, table: { columns: last.table.columns, rows } };
      } else if (table.rows.length > 0) {
        blocks.push({ target, table });
      }
    } catch (error) {
      if (skips(session, error)) continue;
      session.io.err(describeError(error).text);
      exitCode = 1;
    }
  }
  if (blocks.length === 0 && exitCode === 0 && !session.flags.boolean('ignore-not-found')) {
    session.io.err(nothingFound(session, targets));
  }
  const kinds = new Set(targets.map((target) => target.resource));
  const withKind = kinds.size > 1 || session.flags.boolean('show-kind');
  blocks.forEach(({ target, table }, index) => {
    const options = tableOptions(session, target);
    const named = withKind ? labelled(table, target) : table;
    const rows = inOrder(session, named.rows, (row) => row.object);
    const lines = tableLines({ columns: named.columns, rows }, options);
    const style = styleOf(session, { ...options, columns: named.columns, rows: [] });
    session.io.out((index > 0 ? '\n' : '') + alignLines(lines, [], style));
  });
  return exitCode;
}

/** Colors of a table, by the titles that it has or would have. */
function styleOf(
  session: Session,
  of: TableOptions & ObjectTable & { readonly withEvents?: boolean },
): CellStyle {
  const [heading = []] = tableLines({ columns: of.columns, rows: [] }, { ...of, headers: true });
  const titles = of.withEvents === true ? ['EVENT', ...heading] : heading;
  return tableStyle(paintOf(session.io), { heading: titles, headings: of.headers ? 1 : 0 });
}

/** Rows of a Table may come without kind; the kind before a name then comes from discovery. */
function labelled(table: ObjectTable, target: Target): ObjectTable {
  const rows = table.rows.map((row) => ({
    cells: [`${resourceLabel(target.resource)}/${String(row.cells[0])}`, ...row.cells.slice(1)],
    object: row.object,
  }));
  return { columns: table.columns, rows };
}

function nothingFound(session: Session, targets: readonly Target[]): string {
  const namespaced = targets.some((target) => target.resource.namespaced);
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
    labelColumns: flags.list('label-columns').flatMap((one) => one.split(',')),
    headers: !flags.boolean('no-headers'),
  };
}

async function fetchTable(session: Session, target: Target): Promise<ObjectTable> {
  const path = targetPath(target, session.flags.text('subresource') ?? '');
  if (target.name !== undefined) {
    return tableOf(
      (await session.client.send({ path, accept: tableAccept })).object,
      systemClock.now(),
    );
  }
  const limit = session.flags.text('chunk-size') ?? '500';
  let table: ObjectTable | undefined;
  let token: string | undefined;
  do {
    const includeObject = session.flags.has('sort-by') ? 'Object' : undefined;
    const query = { ...selectorQuery(session), limit, continue: token, includeObject };
    const { object } = await session.client.send({ path, query, accept: tableAccept });
    const page = tableOf(object, systemClock.now());
    table = table === undefined ? page : { ...table, rows: [...table.rows, ...page.rows] };
    token = textAt(object, 'metadata', 'continue');
  } while (token !== '');
  return table;
}

/** Lists and then watches one collection or one object (which is a collection of one name). */
async function watchTargets(session: Session, targets: readonly Target[]): Promise<number> {
  const [target] = targets;
  if (target === undefined || targets.length > 1) {
    throw new CliError('you may only specify a single resource type when watching');
  }
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
  const listing = target.name === undefined ? { path: collection, query } : undefined;
  const listed = await session.client.send({
    ...(listing ?? { path: targetPath(target) }),
    accept: sink.accept,
  });
  if (!session.flags.boolean('watch-only') || showsDiffs(session)) sink.list(listed.object);
  const resourceVersion = textAt(listed.object, 'metadata', 'resourceVersion');
  const request = { path: collection, query: { ...query, watch: 'true', resourceVersion } };
  await followEvents(session, request, sink);
  return 0;
}

/** Prints events until the watch ends, or as long as `--request-timeout` lets one request last. */
async function followEvents(
  session: Session,
  request: Pick<ApiRequest, 'path' | 'query'>,
  sink: WatchSink,
): Promise<void> {
  const timeoutMs = session.requestTimeoutMs ?? 0;
  const timeout = timeoutMs > 0 ? AbortSignal.timeout(Math.ceil(timeoutMs)) : undefined;
  const { signal: interrupt } = session.io;
  const signal = timeout === undefined ? interrupt : AbortSignal.any([timeout, interrupt]);
  try {
    const stream = await session.client.stream({ ...request, accept: sink.accept, signal });
    for await (const event of watchEvents(stream.body)) {
      if (event.type === 'ERROR') throw statusError(event.object);
      if (event.type !== 'BOOKMARK') sink.event(event.type, event.object);
    }
  } catch (error) {
    if (timeout?.aborted !== true) throw error;
  }
}

interface WatchSink {
  readonly accept: string;
  list(body: JsonObject): void;
  event(type: string, object: JsonObject): void;
}

function watchSink(session: Session, target: Target): WatchSink {
  if (showsDiffs(session)) {
    const diffs = diffPrinter(session);
    return {
      accept: 'application/json',
      list: (body) => listedObjects(body).forEach(diffs.note),
      event: diffs.show,
    };
  }
  const printer = printerOf(session, { rows: true });
  const withEvents = session.flags.boolean('output-watch-events');
  if (printer !== undefined) {
    const print = (type: string, object: JsonObject) =>
      session.io.out(printer(withEvents ? { type, object } : object));
    return {
      accept: 'application/json',
      list(body) {
        const kind = String(body.kind).replace(/List$/, '');
        const items = Array.isArray(body.items) ? body.items.filter(isObject) : [body];
        const { apiVersion } = body;
        for (const item of items) print('ADDED', { apiVersion, kind, ...item });
      },
      event: print,
    };
  }
  const widths: number[] = [];
  const base = tableOptions(session, target);
  let headers = base.headers;
  let columns: ObjectTable['columns'] = [];
  const print = (type: string, body: JsonObject) => {
    const table = tableOf(body, systemClock.now());
    // Only a watch's first table carries the columns.
    if (table.columns.length > 0) columns = table.columns;
    const options = { ...base, headers };
    const named = { columns, rows: table.rows };
    const complete = session.flags.boolean('show-kind') ? labelled(named, target) : named;
    const lines = tableLines(complete, options);
    const shown = withEvents
      ? lines.map((line, at) => [headers && at === 0 ? 'EVENT' : type, ...line])
      : lines;
    if (table.rows.length > 0) {
      const style = styleOf(session, { ...options, columns, rows: [], withEvents });
      session.io.out(alignLines(shown, widths, style));
      headers = false;
    }
  };
  return { accept: tableAccept, list: (body) => print('ADDED', body), event: print };
}
