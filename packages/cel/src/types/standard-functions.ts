import { operators } from '../library/arithmetic.ts';
import { authorization } from '../library/authorizer.ts';
import { conversions } from '../library/conversions.ts';
import { namedFormats, quantities } from '../library/kubernetes.ts';
import { lists, optionals, sets } from '../library/lists.ts';
import { addresses, urls } from '../library/network.ts';
import { semver } from '../library/semver.ts';
import { strings } from '../library/strings.ts';
import { times } from '../library/times.ts';
import { type Functions, functionsOf } from './functions.ts';

let cachedFunctions: Functions | undefined;

/**
 * The functions of all expressions: those of CEL and of the Kubernetes libraries, including the
 * authorizer's, although that variable exists only where it is declared.
 */
export function standardFunctions(): Functions {
  cachedFunctions ??= functionsOf([
    operators,
    conversions,
    times,
    optionals,
    // The order of `indexOf` of lists and of strings is that of kube-apiserver.
    lists,
    strings,
    sets,
    urls,
    addresses,
    quantities,
    semver,
    namedFormats,
    authorization,
  ]);
  return cachedFunctions;
}
