import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { errorText } from './faults.ts';

test.each<[string, unknown, string]>([
  ['an error', new TypeError('lost'), 'lost'],
  ['an error of another realm', runInNewContext("new Error('far')"), 'far'],
  ['an object with a message', { message: 'plain' }, 'plain'],
  ['a message that is not a string', { message: 3 }, '[object Object]'],
  ['a string', 'thrown', 'thrown'],
  ['nothing', undefined, 'undefined'],
])('the text of %s', (_, thrown, text) => {
  expect(errorText(thrown)).toBe(text);
});
