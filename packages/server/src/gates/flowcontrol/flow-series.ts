/** Why a request is turned away. */
export type Refusal = 'queue-full' | 'concurrency-limit' | 'time-out' | 'cancelled';

/** What is counted of one schema's requests at one level. Times in seconds. */
export interface FlowSeries {
  /** A request of so many seats was looked at. */
  estimated(seats: number): void;
  /** A request runs; `waited` is undefined where nobody waits. */
  began(seats: number, waited: number | undefined): void;
  /** It has been answered, or its watch stands. */
  ended(took: number, type: 'watch' | 'regular'): void;
  /** Its seats are free again. */
  released(seats: number): void;
  /** So many requests are in the queue it has come to. */
  arrived(queueLength: number): void;
  /** A request waits, or does so no longer, by 1 and -1. */
  waiting(requests: number, seats: number): void;
  refused(reason: Refusal, waited: number): void;
  /** Its turn has come, and there are not as many seats free as it wants. */
  tooWide(): void;
  /** So many watches see what it writes. */
  watched(watches: number): void;
}

/** What a level's seats and requests are, between two changes. */
export interface LevelUsage {
  readonly seatsInUse: number;
  readonly seatsWaiting: number;
  readonly executing: { readonly length: number };
  readonly waiting: number;
  /** Seats by shares alone, and as of now. */
  readonly nominal: number;
  readonly limit: number;
  /** Requests that its queues hold together. */
  readonly room: number;
}

/** How long one level was used how much. */
export interface LevelSeries {
  /** The usage was this for so long. */
  lasted(nanoseconds: number, usage: LevelUsage): void;
}
