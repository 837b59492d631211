import { jsonText } from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  cloneJson,
  type JsonObject,
  type MaybePromise,
  StatusError,
} from '@wheelhouse/machinery';
import { ConversionWanted } from '@wheelhouse/structured-merge';
import type { Target } from '../contract.ts';
import { objectAs } from './views.ts';

/** Conversions of one write, beyond which it is given up: a few for each version that owns fields. */
const conversionsMax = 200;

/**
 * Lets a function that cannot wait work with conversions that take a webhook (CRD-4): it is run until
 * it wants one that is not known, which is then asked for, and run again, with the same outcome up to
 * there.
 */
export class AskedConversions {
  /** Those of the run under way. */
  #known: Known | undefined;

  /** Whether objects of a target's kind are converted this way. */
  areNeeded({ def }: Target): boolean {
    return def.behavior.converter !== undefined;
  }

  /** An object in another version; to be called within `during` alone. */
  of(object: JsonObject, apiVersion: string): JsonObject {
    const found = this.#known?.get(keyOf(object, apiVersion));
    if (found === undefined) throw new ConversionWanted(object, apiVersion);
    if (found instanceof StatusError) throw found;
    return cloneJson(found);
  }

  /** Runs `work` until it has all conversions it wants: at once, where it wants none. */
  during<T>({ def }: Target, work: () => T): MaybePromise<T> {
    const known: Known = new Map();
    const first = this.#run(known, work);
    return 'wanted' in first ? this.#goOn({ def, known, work }, first.wanted) : first.made;
  }

  async #goOn<T>(
    { def, known, work }: { def: ResourceDef; known: Known; work: () => T },
    first: ConversionWanted,
  ): Promise<T> {
    let wanted = first;
    for (let asked = 0; asked < conversionsMax; asked += 1) {
      const { object, apiVersion } = wanted;
      const made = objectAs(def, apiVersion, object as ApiObject).catch(failure);
      known.set(keyOf(object, apiVersion), await made);
      const outcome = this.#run(known, work);
      if ('made' in outcome) return outcome.made;
      wanted = outcome.wanted;
    }
    throw wanted;
  }

  #run<T>(known: Known, work: () => T): { made: T } | { wanted: ConversionWanted } {
    this.#known = known;
    try {
      return { made: work() };
    } catch (error) {
      if (error instanceof ConversionWanted) return { wanted: error };
      throw error;
    } finally {
      this.#known = undefined;
    }
  }
}

/** Conversions by version and text; a failed one is thrown where it is wanted. */
type Known = Map<string, JsonObject | StatusError>;

const keyOf = (object: JsonObject, apiVersion: string) => `${apiVersion} ${jsonText(object)}`;

function failure(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  throw error;
}
