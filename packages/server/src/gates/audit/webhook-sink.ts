import { type Clock, random } from '@wheelhouse/machinery';
import { encodeEvent } from './event.ts';
import type { AuditSink, TellLoss } from './sink.ts';

/** Posts a JSON text; rejects if the service does not accept it. */
export interface EventPost {
  post(body: string): Promise<void>;
  close(): void;
}

const attemptsMax = 5;
const pauseFactor = 1.5;
const pauseJitter = 0.2;

/**
 * Posts lists of events to a service (OPS-2). After any failure the list is posted again, up to
 * five times with growing pauses, or at most once more when the server is about to exit.
 */
export function createWebhookSink(options: {
  readonly service: EventPost;
  /** `audit.svc.io/v1` */
  readonly apiVersion: string;
  readonly initialBackoffMs: number;
  readonly clock: Clock;
  readonly tellLoss: TellLoss;
}): AuditSink {
  const { service, clock, tellLoss } = options;
  const head = `{"kind":"EventList","apiVersion":${JSON.stringify(options.apiVersion)},`;
  const pausing = new Set<() => void>();
  const underWay = new Set<Promise<boolean>>();
  let isClosing = false;
  const pause = (delayMs: number) =>
    new Promise<void>((resolve) => {
      if (isClosing) return resolve();
      const done = () => {
        timer.stop();
        pausing.delete(done);
        resolve();
      };
      const timer = clock.after(delayMs, done);
      pausing.add(done);
    });
  const hurry = (): void => {
    isClosing = true;
    for (const done of [...pausing]) done();
  };
  const persist = async (body: string): Promise<void> => {
    let pauseMs = options.initialBackoffMs;
    for (let tried = 1; ; tried += 1) {
      try {
        return await service.post(body);
      } catch (error) {
        if (tried === attemptsMax || isClosing) throw error;
      }
      await pause(pauseMs * (1 + random() * pauseJitter));
      pauseMs *= pauseFactor;
    }
  };
  return {
    process(events) {
      const items = events.map(encodeEvent).join(',');
      const sending = persist(`${head}"metadata":{},"items":[${items}]}\n`).then(
        () => true,
        (error: unknown) => {
          tellLoss({ plugin: 'webhook', error, events });
          return false;
        },
      );
      underWay.add(sending);
      return sending.finally(() => underWay.delete(sending));
    },
    hurry,
    async close() {
      hurry();
      await Promise.all(underWay);
      service.close();
    },
  };
}
