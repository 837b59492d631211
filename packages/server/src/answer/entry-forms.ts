import { jsonText, parseWrittenText } from '@wheelhouse/codec';
import {
  fromStorage,
  type ResourceDef,
  servesStoredForm,
  type VersionDef,
} from '@wheelhouse/kinds';
import type { ApiObject } from '@wheelhouse/machinery';
import { jsonIn } from '../registry/object-codec.ts';
import { type IncludeObject, tableCells } from '../views/tables.ts';
import type { Entry } from '../watchcache/contract.ts';
import { type MetadataPlace, metadataPlace } from '../watchcache/entry.ts';

/**
 * Forms of an entry other than the object, as JSON text. Most of an object is neither printed in a
 * cell nor part of its metadata, and the metadata is wanted as it is: it is cut out of the text,
 * which is several times quicker than to read and write it. That of other versions is the stored one's
 * too: what their conversions write into annotations is, as upstream, in whole objects alone. An object
 * is converted for its cells alone, where they are not told off the stored form.
 */

interface Served {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  /** The apiVersion of what carries metadata alone. */
  readonly metaVersion: string;
}

/** An entry's text, and what is in it when somebody needs that. */
interface Look {
  readonly entry: Entry;
  readonly text: string;
  readonly place: MetadataPlace;
  /** Without who wrote which field, unless a column shows it. */
  readonly stored: () => ApiObject;
  /** The same object in the served version: made of `stored`, which is gone then. */
  readonly converted: () => ApiObject;
}

function lookAt(entry: Entry, { def, version }: Served): Look {
  const text = entry.json.toString('utf8');
  const place = metadataPlace(text);
  let known: ApiObject | undefined;
  let shown: ApiObject | undefined;
  const stored = () => {
    known ??= storedObject(version, text, place);
    return known;
  };
  const converted = () => {
    shown ??= fromStorage(def, version, stored());
    return shown;
  };
  return { entry, text, place, stored, converted };
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
  // Columns of kinds that declare none show metadata.
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

/** The stored object. Who wrote which field takes longest to parse, and few columns show it. */
function storedObject(version: VersionDef, text: string, place: MetadataPlace): ApiObject {
  const { managedStart, managedEnd } = place;
  const isWhole = version.showsManagedFields === true || managedStart === managedEnd;
  const shown = isWhole ? text : text.slice(0, managedStart) + text.slice(managedEnd);
  return parseWrittenText(shown) as ApiObject;
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
