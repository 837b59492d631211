import { type Functions, functionsOf } from './functions.ts';
import { addresses } from './library/addresses.ts';
import { operators } from './library/arithmetic.ts';
import { authorization } from './library/authorizer.ts';
import { conversions } from './library/conversions.ts';
import { lists, newerLists, sets } from './library/lists.ts';
import { namedFormats } from './library/named-formats.ts';
import { optionals } from './library/optionals.ts';
import { quantities } from './library/quantities.ts';
import { semver } from './library/semver.ts';
import { strings } from './library/strings.ts';
import { times } from './library/times.ts';
import { urls } from './library/urls.ts';

const libraries = [
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
  namedFormats,
  authorization,
];

let made: Functions | undefined;
let portable: Functions | undefined;

/**
 * The functions of CEL and those that all expressions have besides: also the authorizer's, though the
 * variable itself is only where it is declared.
 */
export function standardFunctions(): Functions {
  made ??= functionsOf([...libraries, newerLists, semver]);
  return made;
}

/** The functions that new rules of custom kinds may use: those of later releases are not among them. */
export function portableFunctions(): Functions {
  portable ??= functionsOf(libraries);
  return portable;
}
