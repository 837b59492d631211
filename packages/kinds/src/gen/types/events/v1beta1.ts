/** Of earlier releases: the types of `events/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { EventSource, ObjectReference } from '../core/v1.ts';
import type { Embedded, ListMeta, MicroTime, ObjectMeta, Time } from '../meta/v1.ts';
export type Event = {
  apiVersion: string;
  kind: 'Event';
  metadata: ObjectMeta;
  eventTime: MicroTime | null;
  series?: EventSeries;
  reportingController?: string;
  reportingInstance?: string;
  action?: string;
  reason?: string;
  regarding?: Embedded<ObjectReference>;
  related?: Embedded<ObjectReference>;
  note?: string;
  type?: string;
  deprecatedSource?: EventSource;
  deprecatedFirstTimestamp?: Time | null;
  deprecatedLastTimestamp?: Time | null;
  deprecatedCount?: number;
};
export type EventSeries = {
  count: number;
  lastObservedTime: MicroTime | null;
};
export type EventList = {
  apiVersion: string;
  kind: 'EventList';
  metadata: ListMeta;
  items: Embedded<Event>[];
};
