import { cloneJson, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import type { AdmissionCall, Reinvocation } from '../registry/contract.ts';

/**
 * Decides which webhooks or policies of one plugin run again on an object that was changed after
 * them. The second run includes only those that ran in the first.
 */
export class Reinvocable {
  readonly #again: Reinvocation;
  readonly #toAsk = new Set<string>();
  #called = new Set<string>();
  /** The object at the end of the plugin's run. */
  #output: JsonObject | undefined;

  private constructor(again: Reinvocation) {
    this.#again = again;
  }

  /** The state of a plugin for one call, created at its first run. */
  static of(call: AdmissionCall, plugin: string): Reinvocable {
    call.again ??= { isRequested: false, isSecond: false, kept: new Map() };
    const { again } = call;
    const existing = again.kept.get(plugin);
    const reinvocable = existing instanceof Reinvocable ? existing : new Reinvocable(again);
    again.kept.set(plugin, reinvocable);
    if (again.isSecond && !jsonEqual(reinvocable.#output, call.object)) reinvocable.#askAllAgain();
    return reinvocable;
  }

  /** 0 for the first run, 1 for the second. */
  get round(): 0 | 1 {
    return this.#again.isSecond ? 1 : 0;
  }

  /** Whether the webhook or policy takes part in this run. */
  isDue(key: string): boolean {
    return !this.#again.isSecond || this.#toAsk.has(key);
  }

  /**
   * Records a change of the object: earlier ones of this plugin and all other plugins run again.
   */
  objectChanged(): void {
    this.#askAllAgain();
    this.#again.isRequested = true;
  }

  /** Records one that must run again if the object changes after it. */
  recordCall(key: string): void {
    this.#called.add(key);
  }

  /** Ends the plugin's run. */
  leave(object: JsonObject | undefined): void {
    const isNeeded = this.#called.size > 0 && object !== undefined;
    this.#output = isNeeded ? cloneJson(object) : undefined;
  }

  #askAllAgain(): void {
    for (const key of this.#called) this.#toAsk.add(key);
    this.#called = new Set();
  }
}
