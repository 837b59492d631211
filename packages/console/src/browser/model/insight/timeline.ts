import type { JsonObject } from '@wheelhouse/machinery/browser';
import { objectOf, objectsOf, textOf } from '../failure.ts';

/** A condition change, Event, creation, or deletion of an object. */
export interface TimelineEntry {
  readonly source: 'condition' | 'event' | 'metadata';
  /** RFC 3339; empty if unknown. */
  readonly time: string;
  /** `Available is True`, `ScalingReplicaSet` */
  readonly title: string;
  readonly message: string;
  readonly tone: 'good' | 'bad' | 'plain';
  /** The number of occurrences of an Event. */
  readonly count: number;
  /** The reporting component of an Event. */
  readonly reporter: string;
}

/** A condition of an object's status. */
interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly time: string;
  readonly tone: TimelineEntry['tone'];
}

/** Matches condition types that indicate a problem when true. */
const problemCondition =
  /(fail|error|pressure|unavailable|stalled|degraded|denied|unreachable|notaccepted|violat)/i;

/** The conditions of an object, in their stored order. */
export function conditionsOf(object: JsonObject): Condition[] {
  return objectsOf(objectOf(object, 'status'), 'conditions').map((condition) => {
    const type = textOf(condition, 'type');
    const status = textOf(condition, 'status');
    const isGood = (status === 'True') !== problemCondition.test(type);
    return {
      type,
      status,
      reason: textOf(condition, 'reason'),
      message: textOf(condition, 'message'),
      time: textOf(condition, 'lastTransitionTime') || textOf(condition, 'lastUpdateTime'),
      tone: status === 'Unknown' || status === '' ? 'plain' : isGood ? 'good' : 'bad',
    };
  });
}

/** The timeline of an object, newest first; entries without a time are last. */
export function timelineOf(object: JsonObject, events: readonly JsonObject[]): TimelineEntry[] {
  const entries = [
    ...conditionsOf(object).map(conditionEntry),
    ...events.map(eventEntry),
    ...lifecycleEntries(objectOf(object, 'metadata')),
  ];
  const timeOf = ({ time }: TimelineEntry): number => Date.parse(time) || 0;
  return entries.sort((left, right) => timeOf(right) - timeOf(left));
}

function conditionEntry({ type, status, reason, message, time, tone }: Condition): TimelineEntry {
  const title = `${type} is ${status || 'unknown'}`;
  const text = [reason, message].filter((part) => part !== '').join(': ');
  return { source: 'condition', time, title, message: text, tone, count: 1, reporter: '' };
}

function eventEntry(event: JsonObject): TimelineEntry {
  const series = objectOf(event, 'series');
  const times = [
    ...[textOf(series, 'lastObservedTime'), textOf(event, 'lastTimestamp')],
    ...[textOf(event, 'eventTime'), textOf(event, 'firstTimestamp')],
    textOf(objectOf(event, 'metadata'), 'creationTimestamp'),
  ];
  const count = typeof series['count'] === 'number' ? series['count'] : event['count'];
  const source = objectOf(event, 'source');
  return {
    source: 'event',
    time: times.find((time) => time !== '') ?? '',
    title: textOf(event, 'reason') || 'Event',
    message: textOf(event, 'message'),
    tone: textOf(event, 'type') === 'Warning' ? 'bad' : 'plain',
    count: typeof count === 'number' && count > 0 ? count : 1,
    reporter: textOf(source, 'component') || textOf(event, 'reportingComponent'),
  };
}

function lifecycleEntries(metadata: JsonObject): TimelineEntry[] {
  const names = { creationTimestamp: 'Created', deletionTimestamp: 'Deletion requested' };
  return Object.entries(names).flatMap(([name, title]): TimelineEntry[] => {
    const time = textOf(metadata, name);
    if (time === '') return [];
    const tone = name === 'creationTimestamp' ? 'plain' : 'bad';
    return [{ source: 'metadata', time, title, message: '', tone, count: 1, reporter: '' }];
  });
}
