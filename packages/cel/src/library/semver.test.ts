import { expect, test } from 'vitest';
import { compile } from '../compile.ts';
import { standardFunctions } from '../types/standard-functions.ts';

const environment = { functions: standardFunctions(), variables: new Map() };
const outcomeOf = (source: string) => compile(source, environment).program().measure(new Map(), 99);

test.each([
  ['', 'Version string empty'],
  ['1.2', 'No Major.Minor.Patch elements found'],
  ['1.2.3.4', 'Invalid character(s) found in patch number "3.4"'],
  ['v1.2.3', 'Invalid character(s) found in major number "v1"'],
  ['1.-2.3', 'Invalid character(s) found in minor number "-2"'],
  ['01.2.3', 'Major number must not contain leading zeroes "01"'],
  ['1.02.3', 'Minor number must not contain leading zeroes "02"'],
  ['1.2.03', 'Patch number must not contain leading zeroes "03"'],
  ['1..3', 'strconv.ParseUint: parsing "": invalid syntax'],
  ['1.2.+3', 'strconv.ParseUint: parsing "": invalid syntax'],
  [
    '1.2.99999999999999999999',
    'strconv.ParseUint: parsing "99999999999999999999": value out of range',
  ],
  [
    '1.2.3-99999999999999999999',
    'strconv.ParseUint: parsing "99999999999999999999": value out of range',
  ],
  ['1.2.3-', 'Prerelease is empty'],
  ['1.2.3-a..b', 'Prerelease is empty'],
  ['1.2.3-a.01', 'Numeric PreRelease version must not contain leading zeroes "01"'],
  ['1.2.3-a b', 'Invalid character(s) found in prerelease "a b"'],
  ['1.2.3+', 'Build meta data is empty'],
  ['1.2.3-a+b+c', 'Invalid character(s) found in build meta data "b+c"'],
])('the version %j is malformed', (text, message) => {
  expect(outcomeOf(`semver('${text}')`).error?.message).toBe(message);
  expect(outcomeOf(`isSemver('${text}')`).value).toBe(false);
});

test.each(['1.2.3', '1.2.3-0a', '1.2.3+01', '1.2.3+a-b', '0.0.0-a.1.b+c.d'])(
  '%s is valid',
  (text) => {
    expect(outcomeOf(`isSemver('${text}')`).value).toBe(true);
  },
);
