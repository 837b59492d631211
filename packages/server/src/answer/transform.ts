import { jsonText } from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import { badRequest, invalid, type JsonObject, StatusError } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { objectIn } from '../registry/object-codec.ts';
import {
  columnDefinitions,
  defaultColumns,
  type IncludeObject,
  partialObject,
  tableRow,
} from '../views/tables.ts';
import type { Entry, ListResult } from '../watchcache/contract.ts';
import { partialText, rowText } from './entry-forms.ts';
import { type ListDocument, listMetadata, madeList } from './list-document.ts';

const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

/** Makes the form asked for with `as=`: a table, or metadata alone (CODEC-5, CODEC-6). */
export interface Transform {
  /** Names the form: equal names make equal bytes. */
  readonly key: string;
  object(object: JsonObject): JsonObject;
  entry(entry: Entry): Buffer;
  /** A table's columns, where its objects and entries leave them out. */
  readonly columns?: readonly JsonObject[];
  list(result: ListResult): ListDocument;
}

/**
 * The transform a request wants; undefined when it wants objects as they are. A watch's tables come
 * without their columns, which only the first event of a connection has (WATCH-9). Throws 400, 406.
 */
export function transformFor(
  call: ApiCall,
  of: 'object' | 'list' | 'watch',
): Transform | undefined {
  const { as, version } = call.output;
  if (as === 'none') return undefined;
  const metaVersion = `${call.context.dialect.group('meta')}/${version}`;
  if (as === 'Table') return tableTransform(call, { metaVersion, of });
  checkFits(call, of === 'list' ? 'list' : 'object');
  return partialTransform(call, metaVersion);
}

/** Metadata of one object is no list of it, nor the other way round. */
function checkFits(call: ApiCall, of: 'object' | 'list'): void {
  const { as } = call.output;
  const { def } = call.target;
  const isListForm = as === 'PartialObjectMetadataList';
  if (isListForm === (of === 'list')) return;
  const what = of === 'list' ? 'a list' : 'not a list';
  throw new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `you requested ${as}, but the requested object is ${what} (*${def.behavior.goTypeName(def, of)})`,
  });
}

function partialTransform(call: ApiCall, metaVersion: string): Transform {
  const served = { ...servedBy(call), metaVersion };
  return {
    key: `partial;${metaVersion}`,
    object: (whole) => partialObject(whole, metaVersion),
    entry: (one) => Buffer.from(partialText(one, served)),
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

function servedBy({ target }: ApiCall) {
  return { def: target.def, version: target.version };
}

function tableTransform(
  call: ApiCall,
  asked: { readonly metaVersion: string; readonly of: 'object' | 'list' | 'watch' },
): Transform {
  const { metaVersion } = asked;
  const columns = call.target.version.columns ?? defaultColumns;
  const definitions = columnDefinitions(columns);
  const isWatch = asked.of === 'watch';
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
    const { resourceVersion } = (whole.metadata ?? {}) as JsonObject;
    const metadata = resourceVersion === undefined ? {} : { resourceVersion };
    const conditions = call.target.version.rowConditions?.(whole) ?? [];
    return { ...head(metadata), rows: [tableRow(whole, { ...options(), conditions })] };
  };
  const rowOf = () => ({ ...servedBy(call), ...options() });
  return {
    key: `table;${metaVersion};${include}`,
    object,
    ...(isWatch ? { columns: definitions } : {}),
    entry(entry) {
      const metadata = entry.revision === 0 ? {} : { resourceVersion: String(entry.revision) };
      const text = jsonText(head(metadata)).slice(0, -1);
      return Buffer.from(`${text},"rows":[${rowText(entry, rowOf())}]}`);
    },
    list(result) {
      const row = rowOf();
      return madeList({
        head: head(listMetadata(result)),
        member: 'rows',
        count: result.count,
        entries: () => rowEntries(call, result),
        itemText: (entry) => rowText(entry, row),
      });
    },
  };
}

/** The entries of a page in the order of the rows. */
function rowEntries({ target }: ApiCall, result: ListResult): Iterable<Entry> {
  const { def, version } = target;
  const { rowOrder } = version;
  if (rowOrder === undefined) return result.entries();
  const read = [...result.entries()].map((entry) => ({
    entry,
    object: objectIn(def, version, entry),
  }));
  return read.sort((one, other) => rowOrder(one.object, other.object)).map(({ entry }) => entry);
}

/** `includeObject` of the query; rows carry their metadata by default. Throws 400. */
function includedOf(call: ApiCall): IncludeObject {
  const given = call.info.query.get('includeObject') ?? '';
  if (given === '') return 'Metadata';
  const found = includes.find((one) => one === given);
  if (found !== undefined) return found;
  const detail = "must be 'Metadata', 'Object', 'None', or empty";
  const { message } = invalid('includeObject', given, detail);
  throw badRequest(`Unable to convert to Table as requested: includeObject: ${message}`);
}
