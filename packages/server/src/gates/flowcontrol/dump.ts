import { largest } from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import type { PriorityLevel, PriorityLevels } from './priority-levels.ts';
import type { FlowQueue, Seat } from './seat.ts';

/** A table's rows of cells, the header first. */
type Rows = readonly (readonly string[])[];

const folder = '/debug/api_priority_and_fairness/';

/**
 * Renders a debug page about priority levels in kube-apiserver's format; undefined for other paths.
 */
export function dumpLevels(
  levels: PriorityLevels,
  request: { readonly path: string; readonly query: URLSearchParams },
  wallMs: (monotonicMs: number) => number,
): string | undefined {
  if (!request.path.startsWith(folder)) return undefined;
  const all = [...levels.all()].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { set } of all) set.refresh();
  switch (request.path.slice(folder.length)) {
    case 'dump_priority_levels':
      return table(levelRows(all));
    case 'dump_queues':
      return table(queueRows(all));
    case 'dump_requests': {
      const details = request.query.get('includeRequestDetails') ? 'included' : 'omitted';
      return table(requestRows(all, { details, wallMs }));
    }
    default:
      return undefined;
  }
}

const cellWidthMin = 8;

/** Formats rows in columns as wide as their widest cell, with a comma after each but the last. */
function table(rows: Rows): string {
  const texts = rows.map((row) =>
    row.map((cell, index) => (index < row.length - 1 ? `${cell},` : cell)),
  );
  const widths = (texts[0] ?? []).map((_, index) =>
    largest(
      cellWidthMin,
      texts.map((row) => Array.from(row[index] ?? '').length + 1),
    ),
  );
  const padded = (cell: string, index: number) => {
    const missing = (widths[index] ?? 0) - Array.from(cell).length;
    return cell + ' '.repeat(missing);
  };
  return texts
    .map((row) => {
      const cells = row.map((cell, index) => (index < row.length - 1 ? padded(cell, index) : cell));
      return `${cells.join('')}\n`;
    })
    .join('');
}

function levelRows(levels: readonly PriorityLevel[]): Rows {
  const header = [
    'PriorityLevelName',
    'ActiveQueues',
    'IsIdle',
    'IsQuiescing',
    'WaitingRequests',
    'ExecutingRequests',
    'DispatchedRequests',
    'RejectedRequests',
    'TimedoutRequests',
    'CancelledRequests',
  ];
  const rows = levels.map(({ name, isQuiescing, set }) => {
    const { dispatched, rejected, timedOut, cancelled } = set.totals;
    const active = set.queues().filter(({ waiting }) => waiting.length > 0).length;
    const numbers = [dispatched, rejected, timedOut, cancelled];
    return [name, active, set.isIdle, isQuiescing, set.waiting, set.executing.length, ...numbers];
  });
  return [header, ...rows.map((row) => row.map(String))];
}

/** Every queue of a level, including unused ones. */
function queuesOf({ settings, set }: PriorityLevel): readonly (FlowQueue | number)[] {
  const { response } = settings;
  const used = new Map(set.queues().map((queue) => [queue.index, queue]));
  const count = response.type === 'Queue' ? Math.min(response.queues, shownQueuesMax) : 0;
  const first = Array.from({ length: count }, (_, index) => used.get(index) ?? index);
  return [...first, ...[...used.values()].filter(({ index }) => index >= count)];
}

/** Maximum number of queues to list; of the others, a page lists only those in use. */
const shownQueuesMax = 10_000;

function queueRows(levels: readonly PriorityLevel[]): Rows {
  const header = [
    'PriorityLevelName',
    'Index',
    'PendingRequests',
    'ExecutingRequests',
    'SeatsInUse',
    'NextDispatchR',
    'InitialSeatsSum',
    'MaxSeatsSum',
    'TotalWorkSum',
  ];
  const rows = levels.flatMap((level) =>
    queuesOf(level).map((queue) => {
      if (typeof queue === 'number') {
        const none = seatSeconds(0);
        return [level.name, String(queue), '0', '0', '0', none, '0', '0', none];
      }
      return [
        level.name,
        String(queue.index),
        String(queue.waiting.length),
        String(queue.executing),
        String(queue.seatsInUse),
        seatSeconds(queue.nextR),
        String(queue.initialSeatsWaiting),
        String(queue.maxSeatsWaiting),
        seatSeconds(queue.workWaiting),
      ];
    }),
  );
  return [header, ...rows];
}

/** `0.00300000ss` */
function seatSeconds(value: number): string {
  return `${Math.max(0, value).toFixed(8)}ss`;
}

interface RequestDump {
  readonly details: 'included' | 'omitted';
  readonly wallMs: (monotonicMs: number) => number;
}

function requestRows(levels: readonly PriorityLevel[], dump: RequestDump): Rows {
  const header = [
    'PriorityLevelName',
    'FlowSchemaName',
    'QueueIndex',
    'RequestIndexInQueue',
    'FlowDistingsher',
    'ArriveTime',
    'InitialSeats',
    'FinalSeats',
    'AdditionalLatency',
    'StartTime',
  ];
  const more = [
    'UserName',
    'Verb',
    'APIPath',
    'Namespace',
    'Name',
    'APIVersion',
    'Resource',
    'SubResource',
  ];
  const rows = levels.flatMap(({ name, set }) => {
    const waiting = set
      .queues()
      .flatMap((queue) => Array.from(queue.waiting, (seat, index) => ({ seat, index })));
    const running = Array.from(set.executing, (seat) => ({ seat, index: -1 }));
    return [...waiting, ...running].map((request) => requestRow(name, request, dump));
  });
  return [dump.details === 'included' ? [...header, ...more] : header, ...rows];
}

function requestRow(
  level: string,
  { seat, index }: { readonly seat: Seat; readonly index: number },
  { details, wallMs }: RequestDump,
): readonly string[] {
  const { flow, queue, startMs, request } = seat;
  const row = [
    level,
    flow.flowClass.flowSchema,
    String(queue?.index ?? -1),
    String(index),
    flow.distinguisher,
    timeText(wallMs(seat.arrivalMs)),
    String(seat.initialSeats),
    String(seat.finalSeats),
    printGoDuration(BigInt(Math.round(seat.lingerMs * 1e6))),
    startMs === undefined ? '0001-01-01T00:00:00Z' : timeText(wallMs(startMs)),
  ];
  if (details === 'omitted') return row;
  const { info, user } = request;
  const version = info.group === '' ? info.version : `${info.group}/${info.version}`;
  const { verb, path, namespace, name, resource, subresource } = info;
  return [...row, user.name, verb, path, namespace, name, version, resource, subresource];
}

/** RFC 3339 without trailing zeros in the fraction. */
function timeText(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.?0+Z$/, 'Z');
}
