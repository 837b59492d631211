import { cloneJson, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import type { AdmissionCall, Reinvocation } from '../registry/contract.ts';

/**
 * Which webhooks or policies of one plugin are to be asked again about an object, since somebody
 * changed it after them. In the second run only those are asked that were asked in the first.
 */
export class Reinvocable {
  readonly #again: Reinvocation;
  readonly #toAsk = new Set<string>();
  #asked = new Set<string>();
  /** The object as the plugin left it. */
  #output: JsonObject | undefined;

  private constructor(again: Reinvocation) {
    this.#again = again;
  }

  /** What a plugin remembers of a call; made at its first run. */
  static of(call: AdmissionCall, plugin: string): Reinvocable {
    call.again ??= { wanted: false, isSecond: false, kept: new Map() };
    const { again } = call;
    const known = again.kept.get(plugin);
    const remembered = known instanceof Reinvocable ? known : new Reinvocable(again);
    again.kept.set(plugin, remembered);
    if (again.isSecond && !jsonEqual(remembered.#output, call.object)) remembered.#askAllAgain();
    return remembered;
  }

  /** 0 for the first run, 1 for the second. */
  get round(): 0 | 1 {
    return this.#again.isSecond ? 1 : 0;
  }

  /** Whether one is to be asked in this run. */
  isDue(key: string): boolean {
    return !this.#again.isSecond || this.#toAsk.has(key);
  }

  /** The object is another now: those before are asked again, and so are all other plugins. */
  objectChanged(): void {
    this.#askAllAgain();
    this.#again.wanted = true;
  }

  /** One was asked that wants to be asked again where the object changes after it. */
  wasAsked(key: string): void {
    this.#asked.add(key);
  }

  /** The plugin's run is over. */
  leave(object: JsonObject | undefined): void {
    const isNeeded = this.#asked.size > 0 && object !== undefined;
    this.#output = isNeeded ? cloneJson(object) : undefined;
  }

  #askAllAgain(): void {
    for (const key of this.#asked) this.#toAsk.add(key);
    this.#asked = new Set();
  }
}
