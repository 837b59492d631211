import type { FlowInfo } from './contract.ts';
import type { FlowSeries } from './flow-series.ts';
import type { WorkEstimate } from './seat.ts';
import type { WatchCounts } from './watch-counts.ts';

/** How many objects of a resource there are; undefined for one that is not known. */
export type CountObjects = (info: FlowInfo) => number | undefined;

/** The most seats of one request, where its level does not allow fewer. */
const seatsBound = 10;
const objectsPerSeat = 100;
const watchesPerSeat = 10;
/** How long a seat's share of watches is busy with one event, ms. */
const eventMs = 5;

const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, lingerMs: 0 };

/** Seats up to the bound, made once: none is made for each request. */
const estimates = Array.from({ length: seatsBound + 1 }, (_, seats) => ({
  ...oneSeat,
  initialSeats: seats,
}));

/**
 * What requests take of the server (OPS-3): lists by how many objects they go over, writes by how
 * many watches their events go to afterwards, all others one seat.
 */
export function createWorkEstimator(options: {
  readonly watches: WatchCounts;
  readonly countObjects: CountObjects;
}): (info: FlowInfo, series: FlowSeries, seatsMax: number | undefined) => WorkEstimate {
  const { watches, countObjects } = options;
  return (info, series, seatsMax) => {
    if (!info.isResourceRequest) return oneSeat;
    switch (info.verb) {
      case 'list':
        return listEstimate(info, { countObjects, seatsMax });
      case 'watch':
        return sendsObjects(info.query) ? listEstimate(info, { countObjects, seatsMax }) : oneSeat;
      case 'create':
      case 'update':
      case 'patch':
      case 'delete':
        return writeEstimate(info, { watches, series, seatsMax });
      default:
        return oneSeat;
    }
  };
}

/** A watch that begins with what there is costs like a list. */
function sendsObjects(query: URLSearchParams): boolean {
  if (query.get('sendInitialEvents') === 'true') return true;
  const version = query.get('resourceVersion') ?? '';
  return version === '' || version === '0';
}

function boundOf(seatsMax: number | undefined): number {
  return seatsMax === undefined || seatsMax > seatsBound ? seatsBound : seatsMax;
}

function listEstimate(
  info: FlowInfo,
  of: { readonly countObjects: CountObjects; readonly seatsMax: number | undefined },
): WorkEstimate {
  if (info.name !== '') return oneSeat;
  const stored = of.countObjects(info);
  if (stored === undefined) return oneSeat;
  const seats = Math.ceil(objectsGoneOver(info, stored) / objectsPerSeat);
  return estimates[Math.max(1, Math.min(seats, boundOf(of.seatsMax)))] ?? oneSeat;
}

/** As upstream counts them: a page is read from the store, and the rest behind it counted. */
function objectsGoneOver({ verb, query }: FlowInfo, stored: number): number {
  if (verb === 'watch' || query.size === 0) return stored;
  const given = Number(query.get('limit') ?? '');
  const limit = given > 0 && given < stored ? given : stored;
  const match = query.get('resourceVersionMatch') ?? '';
  const isPage = given > 0 && query.get('resourceVersion') !== '0';
  const isContinued = (query.get('continue') ?? '') !== '';
  if (!isPage && !isContinued && (match === '' || match === 'NotOlderThan')) return stored;
  const isSelecting = query.get('fieldSelector') || query.get('labelSelector');
  return isSelecting ? stored + limit : 2 * limit;
}

function writeEstimate(
  info: FlowInfo,
  of: {
    readonly watches: WatchCounts;
    readonly series: FlowSeries;
    readonly seatsMax: number | undefined;
  },
): WorkEstimate {
  // A token is made for an account, and changes nothing that somebody watches.
  if (info.resource === 'serviceaccounts' && info.subresource === 'token') return oneSeat;
  const watches = of.watches.interestedIn(info);
  of.series.watched(watches);
  if (watches < watchesPerSeat) return oneSeat;
  const seats = Math.ceil(watches / watchesPerSeat);
  const finalSeats = Math.min(seats, boundOf(of.seatsMax));
  // As much work as that many seats would do, by fewer of them for longer.
  return { initialSeats: 1, finalSeats, lingerMs: (seats * eventMs) / finalSeats };
}
