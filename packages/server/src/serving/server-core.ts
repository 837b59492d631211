import type { ConnectionHost, PeerConnection } from '@wheelhouse/http2';
import {
  type Clock,
  defer,
  type Exchange,
  type Logger,
  MemoryBudget,
  type OnExchange,
  reportFault,
  type WholeResponse,
} from '@wheelhouse/machinery';
import type { ExchangeBase, ExchangeHost } from './exchange-base.ts';
import type { HttpLimits } from './limits.ts';

/**
 * Bytes charged for a request from its head to the end of its answer, also in a queue or as a
 * watch; estimated from measurements.
 */
function exchangeBytes(url: string): number {
  return 8 * 1024 + 4 * url.length;
}

/**
 * State shared by the protocol adapters: the exchanges in flight, the open connections, and the
 * sweep that enforces the time limits of both.
 */
export class ServerCore implements ExchangeHost, ConnectionHost {
  readonly clock: Clock;
  readonly limits: HttpLimits;
  readonly memory: MemoryBudget;
  readonly #isAlwaysServed: (url: string) => boolean;
  readonly occupancy: LoopOccupancy;
  readonly #logger: Logger;
  #onExchange: OnExchange;
  /** Each at index `place`. An array, because a set would be rehashed every few exchanges. */
  readonly #inFlight: ExchangeBase[] = [];
  readonly #connections = new Set<PeerConnection>();
  /** Exchanges that have not yet been passed to the application. */
  #arrived: ExchangeBase[] = [];
  #draining = false;
  #onQuiet: (() => void) | undefined;

  constructor(options: {
    clock: Clock;
    limits: HttpLimits;
    occupancy?: LoopOccupancy | undefined;
    logger: Logger;
    onExchange: OnExchange;
    /** Budget for memory that clients cause; unlimited when absent. */
    memory?: MemoryBudget | undefined;
    /** Paths that are served even without memory left. */
    isAlwaysServed?: ((url: string) => boolean) | undefined;
  }) {
    this.clock = options.clock;
    this.limits = options.limits;
    this.occupancy = options.occupancy ?? new LoopOccupancy(options.clock);
    this.#logger = options.logger;
    this.#onExchange = options.onExchange;
    this.memory = options.memory ?? new MemoryBudget({ limitBytes: Number.POSITIVE_INFINITY });
    this.#isAlwaysServed = options.isAlwaysServed ?? (() => false);
  }

  get draining(): boolean {
    return this.#draining;
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

  get connections(): ReadonlySet<PeerConnection> {
    return this.#connections;
  }

  connected(connection: PeerConnection): void {
    this.#connections.add(connection);
  }

  disconnected(connection: PeerConnection): void {
    this.#connections.delete(connection);
    connection.memory.close();
  }

  /**
   * Passes an exchange to the application, together with all others from the same turn of the event
   * loop: they run through the same code step by step, which costs a fifth less than one after the
   * other. Exceptions of the application are handled here.
   */
  begin(exchange: ExchangeBase): void {
    exchange.place = this.#inFlight.push(exchange) - 1;
    exchange.connection.active += 1;
    // Requests may begin and end between two sweeps, so a sweep alone cannot detect activity.
    exchange.connection.idleSince = undefined;
    const { url, connection } = exchange;
    const bytes = exchangeBytes(url);
    const isAdmitted = connection.memory.admits(bytes);
    exchange.began(bytes);
    if (url.length > this.limits.urlBytesMax) {
      exchange.send({ status: 414, headers: plainText, body: Buffer.from('URI Too Long\n') });
      return;
    }
    if (!isAdmitted && !this.#isAlwaysServed(url)) {
      exchange.send(shortOfMemory);
      return;
    }
    this.#arrived.push(exchange);
    if (this.#arrived.length === 1) defer(handingOver, this.#handOver);
    if (this.#draining) connection.retire();
  }

  readonly #handOver = (): void => {
    const turn = this.#arrived;
    this.#arrived = [];
    for (const exchange of turn) {
      // The client has already left.
      if (exchange.aborted) continue;
      exchange.resumed();
      try {
        const outcome = this.#onExchange(exchange);
        if (outcome instanceof Promise) outcome.catch((error) => this.#failed(exchange, error));
      } catch (error) {
        this.#failed(exchange, error);
      }
    }
  };

  /** Removes an exchange whose answer has been written or abandoned. */
  end(exchange: ExchangeBase): void {
    if (!this.#remove(exchange)) return;
    exchange.connection.active -= 1;
    exchange.closed();
    if (this.#draining) exchange.connection.retire();
    if (this.#inFlight.length === 0) this.#onQuiet?.();
  }

  /** Ends idle connections and aborts exchanges of slow clients. */
  sweep(): void {
    const now = this.clock.monotonic();
    for (const exchange of [...this.#inFlight]) exchange.expire(now);
    for (const connection of this.#connections) {
      connection.expire(now);
      if (connection.active > 0) connection.idleSince = undefined;
      else connection.idleSince ??= now;
      const { idleSince } = connection;
      if (idleSince !== undefined && now - idleSince > this.limits.idleTimeoutMs) {
        connection.retire();
      }
    }
  }

  /**
   * Ends requests of a connection until about `bytes` are released, the largest first: one without
   * an answer is answered 429, any other is aborted. If that is not enough, the connection is
   * closed too.
   */
  shed(connection: PeerConnection, bytes: number): void {
    const { memory } = connection;
    const enough = memory.bytes - bytes;
    const own = this.#inFlight.filter((exchange) => exchange.connection === connection);
    own.sort((left, right) => right.heldBytes - left.heldBytes);
    for (const exchange of own) {
      if (memory.bytes <= enough) return;
      exchange.shed(shortOfMemory);
    }
    if (memory.bytes > enough) connection.cutOff();
  }

  /** Whether only streams are in flight. */
  get settled(): boolean {
    return this.#inFlight.every(({ isStreaming }) => isStreaming);
  }

  /** Answers requests with `refusal` from now on, as the last answer on their connection. */
  turnAway(refusal: (exchange: Exchange) => WholeResponse | undefined): void {
    const goOn = this.#onExchange;
    this.#onExchange = (exchange) => {
      const response = refusal(exchange);
      if (response === undefined) return goOn(exchange);
      if (exchange.httpVersion === '1.1') exchange.addHeaders?.({ connection: 'close' });
      else (exchange.connection as PeerConnection).retire();
      return exchange.send(response);
    };
  }

  /** Asks all clients to disconnect; resolves once nothing is in flight. */
  drain(): Promise<void> {
    this.#draining = true;
    for (const connection of this.#connections) connection.retire();
    return new Promise((resolve) => {
      this.#onQuiet = resolve;
      if (this.#inFlight.length === 0) resolve();
    });
  }

  destroyConnections(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  /** @returns false if it was not in flight */
  #remove(exchange: ExchangeBase): boolean {
    const { place } = exchange;
    if (this.#inFlight[place] !== exchange) return false;
    exchange.place = -1;
    const last = this.#inFlight.pop() as ExchangeBase;
    if (last !== exchange) {
      this.#inFlight[place] = last;
      last.place = place;
    }
    return true;
  }

  #failed(exchange: ExchangeBase, error: unknown): void {
    this.#logger.error('request handler failed', {
      method: exchange.method,
      path: exchange.url.split('?', 1)[0],
      error,
    });
    if (exchange.answered) exchange.destroy();
    else exchange.send({ status: 500, headers: plainText, body: internalError });
    reportFault('endpoint', error);
  }
}

const handingOver = { where: 'endpoint' } as const;
const plainText = { 'content-type': 'text/plain; charset=utf-8' };
const shortOfMemory: WholeResponse = {
  status: 429,
  headers: { ...plainText, 'retry-after': '1', 'x-content-type-options': 'nosniff' },
  body: Buffer.from('Too many requests, please try again later.\n'),
};
const internalError = Buffer.from('Internal Server Error\n');

/** A request that occupies the thread. */
interface Occupant {
  /** Path and query as received. */
  readonly url: string;
  /** Name of the user; undefined before authentication. */
  readonly userName?: string | undefined;
}

/**
 * Records which request has occupied the thread longest without a break, so that a report of a
 * blocked event loop can name it (TRUST-2). A request enters when its work starts or resumes, which
 * reads the clock; the time until the next entry counts for it.
 */
export class LoopOccupancy {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #current: Occupant | undefined;
  #sinceMs = 0;
  #longest: Occupant | undefined;
  #longestMs = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Marks `occupant` as the current request. */
  enter(occupant: Occupant): void {
    this.#close(this.#clock.monotonic());
    this.#current = occupant;
  }

  /**
   * Returns the request that occupied the thread longest since the last call, and for how many
   * milliseconds.
   */
  takeLongest(): { readonly occupant: Occupant; readonly occupiedMs: number } | undefined {
    this.#close(this.#clock.monotonic());
    const occupant = this.#longest;
    const occupiedMs = this.#longestMs;
    this.#current = undefined;
    this.#longest = undefined;
    this.#longestMs = 0;
    return occupant === undefined ? undefined : { occupant, occupiedMs };
  }

  #close(nowMs: number): void {
    const occupiedMs = nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    if (this.#current === undefined || occupiedMs <= this.#longestMs) return;
    this.#longest = this.#current;
    this.#longestMs = occupiedMs;
  }
}
