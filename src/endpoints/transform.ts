import type { JsonObject } from '../base/json.ts';
import { encodeJson } from '../codec/json.ts';
import { invalid } from '../meta/field-error.ts';
import { badRequest, StatusError } from '../meta/status.ts';
import { objectIn } from '../registry/object-codec.ts';
import {
  columnDefinitions,
  defaultColumns,
  type IncludeObject,
  partialObject,
  tableRow,
} from '../views/tables.ts';
import type { Entry, ListResult } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';

const comma = Buffer.from(',');
const listFooter = Buffer.from(']}\n');
const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

/** Makes the form asked for with `as=`: a table, or metadata alone (CODEC-5, CODEC-6). */
export interface Transform {
  /** Names the form: equal names make equal bytes. */
  readonly key: string;
  object(object: JsonObject): JsonObject;
  entry(entry: Entry): Buffer;
  list(result: ListResult, metadata: JsonObject): Iterable<Buffer>;
}

/** The transform a request wants; undefined when it wants objects as they are. Throws 400, 406. */
export function transformFor(call: ApiCall, of: 'object' | 'list'): Transform | undefined {
  const { as, version } = call.output;
  if (as === 'none') return undefined;
  const metaVersion = `${call.context.dialect.group('meta')}/${version}`;
  if (as === 'Table') return tableTransform(call, metaVersion);
  checkFits(call, of);
  return partialTransform(call, metaVersion);
}

/** Metadata of one object is no list of it, nor the other way round. */
function checkFits(call: ApiCall, of: 'object' | 'list'): void {
  const { as } = call.output;
  const { def, version } = call.target;
  const isListForm = as === 'PartialObjectMetadataList';
  if (isListForm === (of === 'list')) return;
  const goType = `*${version.version}.${of === 'list' ? def.listKind : def.kind}`;
  const what = of === 'list' ? 'a list' : 'not a list';
  throw new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `you requested ${as}, but the requested object is ${what} (${goType})`,
  });
}

function partialTransform(call: ApiCall, metaVersion: string): Transform {
  const { def, version } = call.target;
  const object = (whole: JsonObject) => partialObject(whole, metaVersion);
  const memoKey = `${version.version};${metaVersion};partial`;
  const entry = (one: Entry): Buffer => {
    const known = one.memo?.get(memoKey);
    if (known !== undefined) return known;
    const bytes = encodeJson(object(objectIn(def, version, one)));
    one.memo ??= new Map();
    one.memo.set(memoKey, bytes);
    return bytes;
  };
  return {
    key: `partial;${metaVersion}`,
    object,
    entry,
    list: (result, metadata) =>
      listPieces({
        head: { kind: 'PartialObjectMetadataList', apiVersion: metaVersion, metadata },
        member: 'items',
        items: mapped(result.entries(), entry),
      }),
  };
}

function tableTransform(call: ApiCall, metaVersion: string): Transform {
  const { def, version } = call.target;
  const columns = version.columns ?? defaultColumns;
  const include = includedOf(call);
  const { clock } = call.context;
  const row = (object: JsonObject) =>
    tableRow(object, { columns, include, metaVersion, nowMs: clock.now() });
  const head = (metadata: JsonObject): JsonObject => ({
    kind: 'Table',
    apiVersion: metaVersion,
    metadata,
    columnDefinitions: columnDefinitions(columns),
  });
  const object = (whole: JsonObject) => {
    const { resourceVersion } = (whole.metadata ?? {}) as JsonObject;
    const metadata = resourceVersion === undefined ? {} : { resourceVersion };
    return { ...head(metadata), rows: [row(whole)] };
  };
  return {
    key: `table;${metaVersion};${include}`,
    object,
    entry: (entry) => encodeJson(object(objectIn(def, version, entry))),
    list: (result, metadata) =>
      listPieces({
        head: head(metadata),
        member: 'rows',
        items: mapped(result.entries(), (entry) => encodeJson(row(objectIn(def, version, entry)))),
      }),
  };
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

function* mapped<T, R>(items: Iterable<T>, make: (item: T) => R): Generator<R> {
  for (const item of items) yield make(item);
}

function* listPieces(list: {
  head: JsonObject;
  member: string;
  items: Iterable<Buffer>;
}): Generator<Buffer> {
  const head = encodeJson(list.head).toString('utf8');
  yield Buffer.from(`${head.slice(0, -1)},"${list.member}":[`);
  let isFirst = true;
  for (const item of list.items) {
    yield isFirst ? item : Buffer.concat([comma, item]);
    isFirst = false;
  }
  yield listFooter;
}
