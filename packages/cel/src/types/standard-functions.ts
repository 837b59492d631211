import { addresses } from '../library/addresses.ts';
import { operators } from '../library/arithmetic.ts';
import { authorization } from '../library/authorizer.ts';
import { conversions } from '../library/conversions.ts';
import { lists, sets } from '../library/lists.ts';
import { namedFormats } from '../library/named-formats.ts';
import { optionals } from '../library/optionals.ts';
import { quantities } from '../library/quantities.ts';
import { semver } from '../library/semver.ts';
import { strings } from '../library/strings.ts';
import { times } from '../library/times.ts';
import { urls } from '../library/urls.ts';
import { type Functions, functionsOf } from './functions.ts';

let made: Functions | undefined;

/**
 * The functions of CEL and those that all expressions have besides: also the authorizer's, though the
 * variable itself is only where it is declared.
 */
export function standardFunctions(): Functions {
  made ??= functionsOf([
    operators,
    conversions,
    times,
    optionals,
    strings,
    lists,
    sets,
    urls,
    addresses,
    quantities,
    semver,
    namedFormats,
    authorization,
  ]);
  return made;
}
