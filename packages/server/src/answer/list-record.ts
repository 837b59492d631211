import { jsonText, parseWrittenText } from '@wheelhouse/codec';
import type { JsonObject } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import type { ListDocument } from './list-document.ts';
import { RequestSlices } from './request-slices.ts';

/** The longest list that a record holds, in UTF-16 units: as much as one object may have. */
const recordedUnitsMax = 3 * 1024 * 1024;

/**
 * Puts a list into the audit record where the policy wants answers recorded (OPS-2), in slices. One
 * that is too long is left out, and an annotation says so, as where events are truncated.
 */
export async function recordList(call: ApiCall, document: ListDocument): Promise<void> {
  const { audit } = call;
  if (audit === undefined || !audit.recordsAnswers) return;
  const slices = new RequestSlices(call);
  const texts: string[] = [];
  let units = 0;
  for (const entry of document.entries()) {
    if (slices.over) await slices.pause();
    const text = document.itemText(entry);
    units += text.length;
    if (units > recordedUnitsMax) {
      audit.annotate(`${call.context.dialect.group('audit')}/truncated`, 'true');
      return;
    }
    texts.push(audit.omitsManagedFields ? withoutManagers(text, document.member) : text);
  }
  const head = jsonText(document.head).slice(0, -1);
  audit.responseText(`${head},"${document.member}":[${texts.join(',')}]}`);
}

/** An item without who owns which field; a row carries it in its object. */
function withoutManagers(text: string, member: ListDocument['member']): string {
  const item = parseWrittenText(text) as JsonObject;
  const object = (member === 'rows' ? item.object : item) as JsonObject | null | undefined;
  const metadata = object?.metadata as JsonObject | undefined;
  if (metadata?.managedFields === undefined) return text;
  const { managedFields: _, ...rest } = metadata;
  (object as JsonObject).metadata = rest;
  return jsonText(item);
}
