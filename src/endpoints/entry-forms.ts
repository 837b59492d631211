import type { JsonObject } from '../base/json.ts';
import type { ResourceDef, VersionDef } from '../catalogue/resource-def.ts';
import { jsonText, parseWrittenText } from '../codec/json.ts';
import { objectIn, servesStoredForm } from '../registry/object-codec.ts';
import { type IncludeObject, partialObject, tableCells, tableRow } from '../views/tables.ts';
import type { Entry } from '../watchcache/contract.ts';
import { type MetadataPlace, metadataPlace } from '../watchcache/entry.ts';

/**
 * Forms of an entry other than the object, as JSON text. Most of an object is neither printed in a
 * cell nor part of its metadata, and the metadata is wanted as it is: in the stored version it is cut
 * out of the text, which is several times quicker than to read and write it.
 */

interface Served {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  /** The apiVersion of what carries metadata alone. */
  readonly metaVersion: string;
}

/** An entry's metadata alone (CODEC-6). */
export function partialText(entry: Entry, { def, version, metaVersion }: Served): string {
  if (!servesStoredForm(def, version)) {
    return jsonText(partialObject(objectIn(def, version, entry), metaVersion));
  }
  const text = entry.json.toString('utf8');
  return partialFrom(text, metadataPlace(text), metaVersion);
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
  if (!servesStoredForm(def, version)) {
    return jsonText(tableRow(objectIn(def, version, entry), options));
  }
  const text = entry.json.toString('utf8');
  const place = metadataPlace(text);
  const cells = tableCells(cellObject(def, text, place), columns, nowMs);
  return `{"cells":${jsonText(cells)},"object":${carried(text, place, options)}}`;
}

/**
 * What cells are made from. Who wrote which field takes longest to parse, and columns of built-in
 * kinds don't show it; those of custom kinds may.
 */
function cellObject(def: ResourceDef, text: string, place: MetadataPlace): JsonObject {
  const { managedStart, managedEnd } = place;
  const isWhole = def.custom !== undefined || managedStart === managedEnd;
  const shown = isWhole ? text : text.slice(0, managedStart) + text.slice(managedEnd);
  return parseWrittenText(shown) as JsonObject;
}

function carried(
  text: string,
  place: MetadataPlace,
  { include, metaVersion }: { include: IncludeObject; metaVersion: string },
): string {
  if (include === 'None') return 'null';
  return include === 'Object' ? text : partialFrom(text, place, metaVersion);
}

function partialFrom(text: string, { start, end }: MetadataPlace, metaVersion: string): string {
  const metadata = text.slice(start, end);
  return `{"kind":"PartialObjectMetadata","apiVersion":"${metaVersion}","metadata":${metadata}}`;
}
