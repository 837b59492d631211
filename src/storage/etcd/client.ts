import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
} from '@grpc/grpc-js';
import type { Clock } from '../../base/clock.ts';
import type { StoreError } from '../contract.ts';
import { closedStore } from '../revisions.ts';
import { addressOf } from './address.ts';
import { isPassing, storeErrorOf, timedOut, wasNotSent } from './errors.ts';
import type { Method } from './protocol.ts';

/** Where etcd is, and who we are to it. Certificates and keys are PEM. */
export interface EtcdConnection {
  /** URLs of the members: `https://host:2379`; without a scheme, TLS where there is any PEM. */
  readonly servers: readonly string[];
  readonly ca?: Buffer;
  readonly certificate?: Buffer;
  readonly key?: Buffer;
}

/** A call that is open until it is closed, or has ended. */
export interface OpenStream {
  close(): void;
}

const keepaliveMs = 30_000;
const keepaliveTimeoutMs = 10_000;
const reconnectMs = { first: 100, longest: 1000 };

/**
 * Calls methods of etcd's on one of its members, and goes over to the next one when that does not
 * answer. Every call ends in time; all errors are StoreErrors.
 */
export class EtcdClient {
  readonly #members: readonly Client[];
  readonly #clock: Clock;
  readonly #callTimeoutMs: number;
  readonly #streams = new Set<OpenStream>();
  readonly #metadata = new Metadata();
  #current = 0;
  #closed = false;

  /** Throws StoreError `unavailable` for a server that no URL is made of. */
  constructor(options: {
    readonly connection: EtcdConnection;
    readonly clock: Clock;
    readonly callTimeoutMs: number;
  }) {
    this.#clock = options.clock;
    this.#callTimeoutMs = options.callTimeoutMs;
    // A member that has lost the others must say so, rather than keep us waiting.
    this.#metadata.set('hasleader', 'true');
    this.#members = options.connection.servers.map((url) => memberOf(url, options.connection));
  }

  /**
   * Asks once, or once more where nothing can have happened: `repeatable` says that nothing is
   * changed by asking twice.
   */
  async call<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    options: { readonly repeatable: boolean; readonly timeoutMs?: number },
  ): Promise<Response> {
    const deadline = this.#clock.monotonic() + (options.timeoutMs ?? this.#callTimeoutMs);
    const attemptsMax = Math.max(2, this.#members.length);
    for (let attempt = 1; ; attempt += 1) {
      if (this.#closed) throw closedStore();
      const member = this.#current;
      const timeoutMs = deadline - this.#clock.monotonic();
      try {
        return await this.#callOn(this.#members[member] as Client, { method, request, timeoutMs });
      } catch (error) {
        if (this.#closed) throw closedStore();
        const again = options.repeatable ? isPassing(error) : wasNotSent(error);
        if (isPassing(error)) this.#leave(member);
        if (!again || attempt >= attemptsMax) throw storeErrorOf(error);
      }
    }
  }

  /** Opens a stream both ways and sends the one request; ends at the latest with the client. */
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    handlers: {
      readonly onResponse: (response: Response) => void;
      /** Called once; without an error when etcd has ended the stream as it should. */
      readonly onEnd: (error: StoreError | undefined) => void;
    },
  ): OpenStream {
    const member = this.#current;
    const call = (this.#members[member] as Client).makeBidiStreamRequest(
      method.path,
      (message: Partial<Request>) => method.request.encode(message),
      (bytes: Buffer) => method.response.decode(bytes),
      this.#metadata,
      {},
    );
    const stream = this.#follow(call, handlers, () => this.#leave(member));
    call.write(request);
    return stream;
  }

  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.close();
    for (const member of this.#members) member.close();
  }

  #callOn<Request, Response>(
    member: Client,
    call: {
      readonly method: Method<Request, Response>;
      readonly request: Partial<Request>;
      readonly timeoutMs: number;
    },
  ): Promise<Response> {
    const { method, request, timeoutMs } = call;
    return new Promise((resolve, reject) => {
      const running = member.makeUnaryRequest(
        method.path,
        (message: Partial<Request>) => method.request.encode(message),
        (bytes: Buffer) => method.response.decode(bytes),
        request,
        this.#metadata,
        {},
        (error, response) => {
          timer.stop();
          if (error !== null) reject(error);
          else resolve(response as Response);
        },
      );
      const timer = this.#clock.after(Math.max(0, timeoutMs), () => {
        reject(timedOut());
        running.cancel();
      });
    });
  }

  #follow<Request, Response>(
    call: ClientDuplexStream<Request, Response> | ClientReadableStream<Response>,
    handlers: {
      readonly onResponse: (response: Response) => void;
      readonly onEnd: (error: StoreError | undefined) => void;
    },
    onLost: () => void,
  ): OpenStream {
    let ended = false;
    const end = (error: StoreError | undefined, tell: boolean) => {
      if (ended) return;
      ended = true;
      this.#streams.delete(stream);
      if (tell) handlers.onEnd(error);
    };
    const stream: OpenStream = {
      close: () => {
        end(undefined, false);
        call.cancel();
      },
    };
    this.#streams.add(stream);
    call.on('data', (response: Response) => {
      if (!ended) handlers.onResponse(response);
    });
    call.on('error', (error) => {
      if (isPassing(error)) onLost();
      end(storeErrorOf(error), true);
    });
    call.on('end', () => end(undefined, true));
    return stream;
  }

  /** Goes over to the next member, unless somebody else has done so. */
  #leave(member: number): void {
    if (this.#current === member) this.#current = (member + 1) % this.#members.length;
  }
}

function memberOf(server: string, connection: EtcdConnection): Client {
  const { ca, certificate, key } = connection;
  const hasCertificates = ca !== undefined || certificate !== undefined;
  const { host, address, secure } = addressOf(server, { hasCertificates });
  const trust = secure
    ? credentials.createSsl(ca ?? null, key ?? null, certificate ?? null, {
        checkServerIdentity: (_name, shown) => checkServerIdentity(host, shown),
      })
    : credentials.createInsecure();
  return new Client(address, trust, {
    // TLS names hosts, not addresses; the certificate is judged by the address all the same.
    ...(isIP(host) === 0 ? {} : { 'grpc.ssl_target_name_override': 'etcd' }),
    'grpc.keepalive_time_ms': keepaliveMs,
    'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
    'grpc.initial_reconnect_backoff_ms': reconnectMs.first,
    'grpc.max_reconnect_backoff_ms': reconnectMs.longest,
    // A page of large objects is larger than the library's default of 4 MiB.
    'grpc.max_receive_message_length': -1,
    'grpc.max_send_message_length': -1,
    'grpc.enable_http_proxy': 0,
    // Two stores of one process have connections of their own, as two processes would.
    'grpc.use_local_subchannel_pool': 1,
  });
}
