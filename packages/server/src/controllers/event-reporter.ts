import { hostname } from 'node:os';
import type { ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, errorText, formatMicroTime } from '@wheelhouse/machinery';
import type { ControllerTools } from './tools.ts';

/** What an Event says about an object. */
export interface Incident {
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

/** Milliseconds after which an incident that persists is reported again. */
const repeatMs = 30 * 60_000;

/**
 * Reports incidents as Events of type Warning, which `kubectl describe` shows with the object. An
 * Event that cannot be stored is only logged, because it must not delay its controller.
 */
export class EventReporter {
  readonly #tools: ControllerTools & { readonly events: ResourceDef };
  readonly #controller: string;
  /** When each incident was last reported, in monotonic milliseconds; the oldest first. */
  readonly #reported = new Map<string, number>();
  #count = 0;

  /** @param controller the name of the reporting controller */
  constructor(tools: ControllerTools & { readonly events: ResourceDef }, controller: string) {
    this.#tools = tools;
    this.#controller = controller;
  }

  /** Reports an incident of an object, unless the same one was reported within half an hour. */
  async report({ apiVersion, kind, metadata }: ApiObject, incident: Incident): Promise<void> {
    const { clock, events, logger, writer } = this.#tools;
    const { name = '', namespace = '', uid = '', resourceVersion } = metadata;
    if (this.#isRepeated(`${uid} ${incident.reason} ${incident.note}`)) return;
    const place = namespace === '' ? 'default' : namespace;
    this.#count = (this.#count + 1) % 1_000_000;
    const nanoseconds = BigInt(Math.floor(clock.now())) * 1_000_000n + BigInt(this.#count);
    const at = { def: events, namespace: place, name: `${name}.${nanoseconds.toString(16)}` };
    const event: ApiObject = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: at.name, namespace: place },
      involvedObject: {
        kind,
        ...(namespace === '' ? {} : { namespace }),
        name,
        uid,
        apiVersion,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
      reason: incident.reason,
      message: incident.note,
      type: 'Warning',
      eventTime: formatMicroTime(clock.now()),
      action: incident.action,
      reportingComponent: this.#controller,
      reportingInstance: `${this.#controller}-${hostname()}`,
    };
    try {
      await writer.create(at, event);
    } catch (error) {
      logger.debug(2, 'cannot store an Event', { name: at.name, error: errorText(error) });
    }
  }

  #isRepeated(incident: string): boolean {
    const now = this.#tools.clock.monotonic();
    for (const [old, reportedMs] of this.#reported) {
      if (now - reportedMs < repeatMs) break;
      this.#reported.delete(old);
    }
    if (this.#reported.has(incident)) return true;
    this.#reported.set(incident, now);
    return false;
  }
}
