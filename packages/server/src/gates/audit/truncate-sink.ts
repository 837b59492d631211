import type { Dialect } from '@wheelhouse/machinery';
import { type AuditEvent, encodeEvent, reaches } from './event.ts';
import type { AuditSink, TellLoss } from './sink.ts';

/**
 * Limits the size of events and batches: an event that is too large is annotated and loses its
 * objects, and is dropped if that is not enough; a batch that is too large is split (OPS-2).
 */
export function truncatingSink(
  sink: AuditSink,
  options: {
    readonly eventBytesMax: number;
    readonly batchBytesMax: number;
    readonly dialect: Dialect;
    readonly tellLoss: TellLoss;
  },
): AuditSink {
  const { eventBytesMax, batchBytesMax, dialect, tellLoss } = options;
  const annotation = `${dialect.group('audit')}/truncated`;
  return {
    process(events) {
      const lost: AuditEvent[] = [];
      const batches: AuditEvent[][] = [];
      let batchBytes = 0;
      for (const original of events) {
        const event = fitting(original, eventBytesMax, annotation);
        const bytes = sizeOf(event);
        if (bytes > eventBytesMax) {
          lost.push(event);
          continue;
        }
        const current = batches.at(-1);
        if (current === undefined || batchBytes + bytes > batchBytesMax) {
          batches.push([event]);
          batchBytes = bytes;
        } else {
          current.push(event);
          batchBytes += bytes;
        }
      }
      if (lost.length > 0) {
        const error = new Error('event is too large even after truncating');
        tellLoss({ plugin: 'truncate', error, events: lost });
      }
      return handOn(sink, batches);
    },
    close: () => sink.close(),
  };
}

async function handOnRest(
  sink: AuditSink,
  rest: { readonly pending: Promise<boolean>; readonly batches: readonly AuditEvent[][] },
): Promise<boolean> {
  let isWhole = await rest.pending;
  for (const batch of rest.batches) isWhole = (await sink.process(batch)) && isWhole;
  return isWhole;
}

function handOn(sink: AuditSink, batches: readonly AuditEvent[][]) {
  let isWhole = true;
  for (let index = 0; index < batches.length; index += 1) {
    const taken = sink.process(batches[index] ?? []);
    if (taken instanceof Promise) {
      const rest = handOnRest(sink, { pending: taken, batches: batches.slice(index + 1) });
      return rest.then((isRestWhole) => isRestWhole && isWhole);
    }
    isWhole = taken && isWhole;
  }
  return isWhole;
}

function fitting(event: AuditEvent, bytesMax: number, annotation: string): AuditEvent {
  if (!reaches(event.level, 'Request') || sizeOf(event) <= bytesMax) return event;
  const annotations = new Map(event.annotations).set(annotation, 'true');
  return { ...event, requestObject: undefined, responseObject: undefined, annotations };
}

function sizeOf(event: AuditEvent): number {
  return Buffer.byteLength(encodeEvent(event));
}
