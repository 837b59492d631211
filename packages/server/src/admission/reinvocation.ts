import { cloneJson, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import type { AdmissionCall, Reinvocation } from '../registry/contract.ts';

/**
 * Which webhooks or policies of one plugin are to be asked again about an object, since somebody
 * changed it after them. In the second run only those are asked that were asked in the first.
 */
export class Reinvocable {
  readonly #again: Reinvocation;
  readonly #toAsk = new Set<string>();
  #called = new Set<string>();
  /** The object as the plugin left it. */
  #output: JsonObject | undefined;

  private constructor(again: Reinvocation) {
    this.#again = again;
  }

  /** What a plugin remembers of a call; made at its first run. */
  static of(call: AdmissionCall, plugin: string): Reinvocable {
    call.again ??= { wanted: false, isSecond: false, kept: new Map() };
    const { again } = call;
    const existing = again.kept.get(plugin);
    const remembered = existing instanceof Reinvocable ? existing : new Reinvocable(again);
    again.kept.set(plugin, remembered);
    if (again.isSecond && !jsonEqual(remembered.#output, call.object)) remembered.#askAllAgain();
    return remembered;
  }

  /** 0 for the first run, 1 for the second. */
  get round(): 0 | 1 {
    return this.#again.isSecond ? 1 : 0;
  }

  /** Whether to call this one in this run. */
  isDue(key: string): boolean {
    return !this.#again.isSecond || this.#toAsk.has(key);
  }

  /** The object changed: earlier ones of this plugin and all other plugins run again. */
  objectChanged(): void {
    this.#askAllAgain();
    this.#again.wanted = true;
  }

  /** Records a call of one that must be called again if the object changes after it. */
  wasAsked(key: string): void {
    this.#called.add(key);
  }

  /** The plugin's run is over. */
  leave(object: JsonObject | undefined): void {
    const isNeeded = this.#called.size > 0 && object !== undefined;
    this.#output = isNeeded ? cloneJson(object) : undefined;
  }

  #askAllAgain(): void {
    for (const key of this.#called) this.#toAsk.add(key);
    this.#called = new Set();
  }
}
