import { jsonText, parseAhead, parseWrittenJson, parseWrittenText } from '@wheelhouse/codec';
import {
  type ColumnDef,
  createdAtColumn,
  fromStorage,
  nameColumn,
  type ResourceDef,
  servesStoredForm,
  type VersionDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  badRequest,
  invalid,
  type JsonObject,
  type JsonValue,
  jsonObject,
  pacedBytesMin,
  StatusError,
} from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { jsonAhead, jsonIn, objectIn } from '../registry/object-codec.ts';
import type { ListResult } from '../watchcache/contract.ts';
import { type Entry, locateMetadata, type MetadataLocation } from '../watchcache/entry.ts';
import { type ListDocument, listMetadata, madeList } from './lists.ts';

/** The object that a table row contains besides its cells (CODEC-5). */
type IncludeObject = 'None' | 'Metadata' | 'Object';

const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

/** Creates the form that `as=` requests: a table, or metadata alone (CODEC-5, CODEC-6). */
export interface Transform {
  /** Identifies the form: equal keys produce equal bytes. */
  readonly key: string;
  object(object: JsonObject): JsonObject;
  entry(entry: Entry): Buffer;
  /** Performs the expensive part of a large entry's form in steps. */
  ahead(entry: Entry): Generator<void, void>;
  /** A table's columns, if its objects and entries omit them. */
  readonly columns?: readonly JsonObject[];
  list(result: ListResult): ListDocument;
}

/**
 * The transform that a request asks for; undefined for objects as they are. Tables of a watch omit
 * their columns, which only the first event of a connection has (WATCH-9). Throws 400 and 406.
 */
export function transformFor(
  call: ApiCall,
  of: 'object' | 'list' | 'watch',
): Transform | undefined {
  const { shape, shapeVersion } = call.rendering;
  if (shape === 'object') return undefined;
  const metaVersion = `${call.context.dialect.group('meta')}/${shapeVersion}`;
  if (shape === 'Table') return tableTransform(call, { metaVersion, of });
  checkFits(call, of === 'list' ? 'list' : 'object');
  return partialTransform(call, metaVersion);
}

/** The JSON of an entry in the request's version and form, in steps. */
export function* jsonSteps(
  { entryKind: def, target: { version } }: ApiCall,
  entry: Entry,
  transform: Transform | undefined,
): Generator<void, Buffer> {
  yield* transform?.ahead(entry) ?? jsonAhead(def, version, entry);
  return transform?.entry(entry) ?? jsonIn(def, version, entry);
}

/** Throws 406 if metadata of a list is requested for one object, or the other way round. */
function checkFits(call: ApiCall, of: 'object' | 'list'): void {
  const { shape } = call.rendering;
  const { def } = call.target;
  const isListForm = shape === 'PartialObjectMetadataList';
  if (isListForm === (of === 'list')) return;
  const form = of === 'list' ? 'a list' : 'not a list';
  throw new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `you requested ${shape}, but the requested object is ${form} (*${def.behavior.goTypeName(def, of)})`,
  });
}

function partialTransform(call: ApiCall, metaVersion: string): Transform {
  const served = { ...servedBy(call), metaVersion };
  return {
    key: `partial;${metaVersion}`,
    object: (whole) => partialObject(whole, metaVersion),
    entry: (entry) => Buffer.from(partialText(entry, served)),
    *ahead() {},
    list: (result) =>
      madeList({
        head: {
          kind: 'PartialObjectMetadataList',
          apiVersion: metaVersion,
          metadata: listMetadata(result),
        },
        member: 'items',
        count: result.count,
        entries: () => result.entries(),
        itemText: (entry) => partialText(entry, served),
      }),
  };
}

function servedBy({ target, entryKind }: ApiCall) {
  return { def: entryKind, version: target.version };
}

function tableTransform(
  call: ApiCall,
  form: { readonly metaVersion: string; readonly of: 'object' | 'list' | 'watch' },
): Transform {
  const { metaVersion } = form;
  const columns = call.target.version.columns ?? defaultColumns;
  const definitions = columnDefinitions(columns);
  const isWatch = form.of === 'watch';
  const include = includedOf(call);
  const { clock } = call.context;
  const options = () => ({ columns, include, metaVersion, nowMs: clock.now() });
  const head = (metadata: JsonObject): JsonObject => ({
    kind: 'Table',
    apiVersion: metaVersion,
    metadata,
    columnDefinitions: isWatch ? null : definitions,
  });
  const object = (whole: JsonObject) => {
    const { resourceVersion } = jsonObject(whole.metadata ?? {});
    const metadata = resourceVersion === undefined ? {} : { resourceVersion };
    const conditions = call.target.version.rowConditions?.(whole) ?? [];
    return { ...head(metadata), rows: [tableRow(whole, { ...options(), conditions })] };
  };
  const rowOf = () => ({ ...servedBy(call), ...options() });
  function* ahead(entry: Entry): Generator<void, void> {
    const { def, version } = servedBy(call);
    if (include === 'Object' && entry.json.length >= pacedBytesMin) {
      yield* jsonAhead(def, version, entry);
    }
    yield* rowAhead(entry);
  }
  return {
    key: `table;${metaVersion};${include}`,
    object,
    ...(isWatch ? { columns: definitions } : {}),
    entry(entry) {
      const metadata = entry.revision === 0 ? {} : { resourceVersion: String(entry.revision) };
      const text = jsonText(head(metadata)).slice(0, -1);
      return Buffer.from(`${text},"rows":[${rowText(entry, rowOf())}]}`);
    },
    ahead,
    list(result) {
      const row = rowOf();
      return madeList({
        head: head(listMetadata(result)),
        member: 'rows',
        count: result.count,
        entries: () => rowEntries(call, result),
        itemText: (entry) => rowText(entry, row),
        ahead,
      });
    },
  };
}

/** The entries of a page in row order. */
function rowEntries(call: ApiCall, result: ListResult): Iterable<Entry> {
  const { def, version } = servedBy(call);
  const { rowOrder } = version;
  if (rowOrder === undefined) return result.entries();
  const read = [...result.entries()].map((entry) => ({
    entry,
    object: objectIn(def, version, entry),
  }));
  return read.sort((left, right) => rowOrder(left.object, right.object)).map(({ entry }) => entry);
}

/** Throws 400 if a table is requested with an invalid `includeObject`. */
export function checkTableOptions(call: ApiCall): void {
  if (call.rendering.shape === 'Table') includedOf(call);
}

/** The `includeObject` parameter; by default rows carry metadata. Throws 400. */
function includedOf(call: ApiCall): IncludeObject {
  const policy = call.info.query.get('includeObject') ?? '';
  if (policy === '') return 'Metadata';
  const included = includes.find((value) => value === policy);
  if (included !== undefined) return included;
  const detail = "must be 'Metadata', 'Object', 'None', or empty";
  const { message } = invalid('includeObject', policy, detail);
  throw badRequest(`Unable to convert to Table as requested: includeObject: ${message}`);
}

/**
 * Forms of an entry other than the object, as JSON text. Most of an object is neither in a cell nor
 * in its metadata, and the metadata is needed unchanged, so it is cut out of the text: several
 * times faster than decoding and encoding it. Other versions show the stored metadata too;
 * annotations that conversions add appear only in whole objects. An object is converted only for
 * cells that cannot be computed from the stored form.
 */

interface Served {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  /** The apiVersion of PartialObjectMetadata. */
  readonly metaVersion: string;
}

/** An entry's text, and its object, which is decoded and converted on demand. */
interface Look {
  readonly entry: Entry;
  readonly text: string;
  readonly place: MetadataLocation;
  /** The stored object, without managed fields unless a column shows them. */
  readonly stored: () => ApiObject;
  /** The object in the served version; consumes `stored`. */
  readonly converted: () => ApiObject;
}

function lookAt(entry: Entry, { def, version }: Served): Look {
  const text = entry.json.toString('utf8');
  const place = locateMetadata(text);
  let decoded: ApiObject | undefined;
  let shown: ApiObject | undefined;
  const stored = () => {
    decoded ??=
      entry.json.length < pacedBytesMin
        ? storedObject(version, text, place)
        : asApiObject(parseWrittenJson(entry.json));
    return decoded;
  };
  const converted = () => {
    shown ??= fromStorage(def, version, stored());
    return shown;
  };
  return { entry, text, place, stored, converted };
}

/** Parses a large entry in steps before its row is made. */
function* rowAhead(entry: Entry): Generator<void, void> {
  if (entry.json.length >= pacedBytesMin) yield* parseAhead(entry.json);
}

/** An entry's metadata alone (CODEC-6). */
export function partialText(entry: Entry, served: Served): string {
  return partialFrom(lookAt(entry, served), served);
}

/** An entry as a row of a table (CODEC-5). */
export function rowText(
  entry: Entry,
  options: Served & {
    readonly columns: NonNullable<VersionDef['columns']>;
    readonly include: IncludeObject;
    readonly nowMs: number;
  },
): string {
  const { def, version, columns, nowMs } = options;
  const look = lookAt(entry, options);
  // Default columns show only metadata, which is the same in all versions.
  const isAlike = servesStoredForm(def, version) || version.columns === undefined;
  const ofStored = isAlike ? columns : version.storedColumns;
  const cells =
    ofStored === undefined
      ? tableCells(look.converted(), columns, nowMs)
      : tableCells(look.stored(), ofStored, nowMs);
  return `{"cells":${jsonText(cells)},${conditionsPart(look, version)}"object":${carried(look, options)}}`;
}

function conditionsPart(look: Look, { rowConditions }: VersionDef): string {
  const conditions = rowConditions?.(look.stored()) ?? [];
  return conditions.length === 0 ? '' : `"conditions":${jsonText([...conditions])},`;
}

/** The stored object. Managed fields take longest to parse, and few columns show them. */
function storedObject(version: VersionDef, text: string, place: MetadataLocation): ApiObject {
  const { managedStart, managedEnd } = place;
  const isWhole = version.showsManagedFields === true || managedStart === managedEnd;
  const shown = isWhole ? text : text.slice(0, managedStart) + text.slice(managedEnd);
  return asApiObject(parseWrittenText(shown));
}

function carried(look: Look, options: Served & { readonly include: IncludeObject }): string {
  const { include, def, version } = options;
  if (include === 'None') return 'null';
  if (include === 'Metadata') return partialFrom(look, options);
  return servesStoredForm(def, version)
    ? look.text
    : jsonIn(def, version, look.entry).toString('utf8');
}

function partialFrom({ text, place }: Look, { metaVersion }: Served): string {
  const metadata = text.slice(place.start, place.end);
  return `{"kind":"PartialObjectMetadata","apiVersion":"${metaVersion}","metadata":${metadata}}`;
}

/** The columns of kinds that declare none. */
export const defaultColumns: readonly ColumnDef[] = [nameColumn, createdAtColumn];

/** The `columnDefinitions` of a table. */
export function columnDefinitions(columns: readonly ColumnDef[]): JsonObject[] {
  return columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
}

/**
 * A row of a table.
 *
 * @param options.metaVersion the apiVersion of a PartialObjectMetadata
 * @param options.nowMs the current time for ages, milliseconds since the epoch
 */
export function tableRow(
  object: JsonObject,
  options: {
    readonly columns: readonly ColumnDef[];
    readonly include: IncludeObject;
    readonly metaVersion: string;
    readonly nowMs: number;
    readonly conditions?: readonly JsonObject[];
  },
): JsonObject {
  const { columns, include, metaVersion, nowMs, conditions = [] } = options;
  return {
    cells: tableCells(object, columns, nowMs),
    ...(conditions.length === 0 ? {} : { conditions: [...conditions] }),
    object: rowObject(object, include, metaVersion),
  };
}

/** How many values the columns of a row visit together (TRUST-2); further cells are empty. */
const rowValuesMax = 100_000;

/** The cells of a row, in column order; null where a column has no value. */
function tableCells(object: JsonObject, columns: readonly ColumnDef[], nowMs: number): JsonValue[] {
  const budget = { left: rowValuesMax };
  return columns.map((column): JsonValue => column.cell(object, nowMs, budget) ?? null);
}

function rowObject(object: JsonObject, include: IncludeObject, metaVersion: string): JsonValue {
  if (include === 'None') return null;
  return include === 'Object' ? object : partialObject(object, metaVersion);
}

/** The PartialObjectMetadata of an object (CODEC-6). */
export function partialObject(object: JsonObject, metaVersion: string): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: metaVersion,
    metadata: object.metadata ?? {},
  };
}
