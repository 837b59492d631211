import { type Functions, functionsOf } from './functions.ts';
import { addresses } from './library/addresses.ts';
import { operators } from './library/arithmetic.ts';
import { conversions } from './library/conversions.ts';
import { lists, sets } from './library/lists.ts';
import { namedFormats } from './library/named-formats.ts';
import { optionals } from './library/optionals.ts';
import { quantities } from './library/quantities.ts';
import { semver } from './library/semver.ts';
import { strings } from './library/strings.ts';
import { times } from './library/times.ts';
import { urls } from './library/urls.ts';

let made: Functions | undefined;

/** The functions of CEL and those that custom kinds' rules have besides. */
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
  ]);
  return made;
}
