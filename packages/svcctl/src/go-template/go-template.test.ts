import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { runGoTemplate, TemplateRunError } from './exec.ts';
import { functionNames } from './functions.ts';
import { TemplateError } from './lex.ts';
import { parseGoTemplate } from './parse.ts';

const object: JsonObject = {
  kind: 'Thing',
  metadata: { name: 'x', empty: null, labels: { b: 'two', a: 'one' } },
  spec: { replicas: 3, ratio: 0.25, big: 9007199254740993n, ready: true, list: ['p', 'q', 'r'] },
  items: [{ name: 'i', ports: [{ port: 80 }, { port: 443 }] }, { name: 'j' }],
};

const fill = (template: string, of: JsonObject = object) =>
  runGoTemplate(parseGoTemplate(template, functionNames), of);

function failure(template: string): string {
  try {
    return `no failure: ${fill(template)}`;
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return error.message;
  }
}

describe('CLIENT-1: templates print the same as Go', () => {
  test.each<[template: string, printed: string]>([
    ['plain text', 'plain text'],
    ['{{.kind}} {{.metadata.name}}', 'Thing x'],
    [
      '{{.spec.replicas}} {{.spec.ratio}} {{.spec.big}} {{.spec.ready}}',
      '3 0.25 9007199254740993 true',
    ],
    ['{{.nope}}|{{.nope.deeper}}|{{.metadata.empty}}', '<no value>|<no value>|<no value>'],
    ['{{.metadata}}', 'map[empty:<nil> labels:map[a:one b:two] name:x]'],
    ['{{.spec.list}}', '[p q r]'],
    ['{{range .spec.list}}<{{.}}>{{end}}', '<p><q><r>'],
    ['{{range $i, $e := .spec.list}}{{$i}}{{$e}} {{end}}', '0p 1q 2r '],
    ['{{range $k, $v := .metadata.labels}}{{$k}}={{$v}},{{end}}', 'a=one,b=two,'],
    ['{{range .nope}}x{{else}}none{{end}}', 'none'],
    ['{{range .spec.list}}{{if eq . "q"}}{{continue}}{{end}}{{.}}{{end}}', 'pr'],
    ['{{range .spec.list}}{{if eq . "q"}}{{break}}{{end}}{{.}}{{end}}', 'p'],
    ['{{range .items}}{{.name}}:{{range .ports}}{{.port}};{{end}} {{end}}', 'i:80;443; j: '],
    ['{{if .nope}}a{{else if .kind}}b{{else}}c{{end}}', 'b'],
    ['{{with .metadata.labels}}{{.a}}{{$.kind}}{{end}}', 'oneThing'],
    ['{{with .nope}}a{{else with .kind}}{{.}}{{end}}', 'Thing'],
    ['{{$x := 1}}{{if true}}{{$x = 2}}{{$y := 3}}{{end}}{{$x}}', '2'],
    ['{{define "t"}}[{{.}}]{{end}}{{template "t" .kind}}{{template "t"}}', '[Thing][<no value>]'],
    ['{{block "b" .metadata}}{{.name}}{{end}}', 'x'],
    ['a {{- " b " -}} c{{/* nothing */}}', 'a b c'],
    ['{{"quoted\\t\\x41\\u00fc"}}{{`raw\\n`}}{{\'a\'}}', 'quoted\tAüraw\\n97'],
    ['{{index .metadata.labels "a"}}{{index .items 0 "ports" 1 "port"}}', 'one443'],
    ['{{index .metadata.labels "z"}}{{index "abc" 1}}', '<no value>98'],
    ['{{len .spec.list}}{{len .kind}}{{len .metadata.labels}}', '352'],
    ['{{slice .spec.list 1 2}}{{slice .kind 2}}', '[q]ing'],
    ['{{and 1 0 .x}}{{or 0 "x"}}{{not .nope}}', '0xtrue'],
    ['{{or true .kind.deeper}}', 'true'],
    ['{{eq 1 1}}{{eq .kind "a" "Thing"}}{{ne 1 2}}{{eq .nope nil}}', 'truetruetruetrue'],
    ['{{lt 1 2}}{{le "a" "a"}}{{gt .spec.ratio 0.5}}{{ge 2 3}}', 'truetruefalsefalse'],
    ['{{print "a" 1 2 "b" true nil}}{{println 1 "c"}}', 'a1 2btrue <nil>1 c\n'],
    ['{{printf "%s-%d-%v" .kind .spec.replicas .spec.list}}', 'Thing-3-[p q r]'],
    [
      '{{printf "%5s|%-5s|%05d|%+d|%x|%X|%o|%b" "r" "l" 42 5 255 255 8 5}}',
      '    r|l    |00042|+5|ff|FF|10|101',
    ],
    [
      '{{printf "%.2f %6.1f %e %g %t %q %c %U" 3.14159 2.5 1.5 1e3 true "q" 65 65}}',
      '3.14    2.5 1.500000e+00 1000 true "q" A U+0041',
    ],
    ['{{printf "%d %s %z" "x" 1 2}}', '%!d(string=x) %!s(int=1) %!z(int=2)'],
    [
      '{{printf "%s"}}{{printf "a" 1}}{{printf "%s %v" .nope .nope}}',
      '%!s(MISSING)a%!(EXTRA int=1)%!s(<nil>) <nil>',
    ],
    [
      '{{printf "%T %T %[1]d%% %*d" 1 .spec.list}}',
      'int []interface {} 1% %!(BADWIDTH)%!d(MISSING)',
    ],
    ['{{.kind | printf "%s-%s" "a" | len}}', '7'],
    ['{{"aGk=" | base64decode}}', 'hi'],
    ['{{exists . "metadata" "name"}}{{exists . "metadata" "z" "y"}}', 'truefalse'],
    ['{{html "<&>"}}{{urlquery "a b/"}}{{js "a<"}}', '&lt;&amp;&gt;a+b%2Fa\\u003C'],
    ['{{print 100000.0}} {{print 1000000.0}} {{print 0.00001}}', '100000 1e+06 1e-05'],
    ['{{0x10}} {{017}} {{0b11}} {{1_000}} {{-3}} {{1e2}}', '16 15 3 1000 -3 100'],
  ])('%s', (template, printed) => {
    expect(fill(template)).toBe(printed);
  });

  test('inherited members of objects are absent', () => {
    expect(fill('{{.constructor}}{{.__proto__}}{{index . "toString"}}')).toBe(
      '<no value><no value><no value>',
    );
    expect(fill('{{.__proto__}}', JSON.parse('{"__proto__":"own"}'))).toBe('own');
  });
});

describe('CLIENT-1: template errors match those of Go', () => {
  test.each<[template: string, message: string]>([
    ['{{.a', '1: unclosed action'],
    ['{{.a\n', '2: unclosed action started at output:1'],
    ['\n{{if .a}}', '2: unexpected EOF'],
    ['{{end}}', '1: unexpected {{end}}'],
    ['{{if 1}}{{else}}{{else}}{{end}}', '1: expected end; found {{else}}'],
    ['{{foo}}', '1: function "foo" not defined'],
    ['{{$x}}', '1: undefined variable "$x"'],
    ['{{}}', '1: missing value for command'],
    ['{{if}}{{end}}', '1: missing value for if'],
    ['{{(1}}', '1: unclosed left paren'],
    ['{{1)}}', '1: unexpected right paren'],
    ['{{"a}}', '1: unterminated quoted string'],
    ['{{"\\q"}}', '1: invalid syntax'],
    ['{{.a-b}}', "1: bad character U+002D '-'"],
    ['{{&}}', '1: unexpected "&" in command'],
    ['{{nil.x}}', '1: unexpected . after term "nil"'],
    ['{{1x}}', '1: bad number syntax: "1x"'],
    ['{{99999999999999999999}}', '1: integer overflow: "99999999999999999999"'],
    ['{{1 | 2}}', '1: non executable command in pipeline stage 2'],
    ['{{break}}', '1: {{break}} outside {{range}}'],
    ['{{/* a', '1: unclosed comment'],
    [`${'{{if 1}}'.repeat(300)}`, '1: nested too deeply'],
  ])('$0', (template, message) => {
    expect(failure(template)).toBe(`template: output:${message}`);
  });

  test.each<[template: string, message: string]>([
    [
      '{{.kind.x}}',
      '1:7: executing "output" at <.kind.x>: can\'t evaluate field x in type interface {}',
    ],
    [
      'a\nü{{.metadata.empty.x}}',
      '2:13: executing "output" at <.metadata.empty.x>: nil pointer evaluating interface {}.x',
    ],
    [
      '{{range .kind}}{{end}}',
      '1:8: executing "output" at <.kind>: range can\'t iterate over Thing',
    ],
    [
      '{{index .spec.list 9}}',
      '1:2: executing "output" at <index .spec.list 9>: error calling index: index out of range: 9',
    ],
    [
      '{{index .nope 1}}',
      '1:2: executing "output" at <index .nope 1>: error calling index: index of untyped nil',
    ],
    ['{{len 3}}', '1:2: executing "output" at <len 3>: error calling len: len of type int'],
    [
      '{{eq 1 "a"}}',
      '1:2: executing "output" at <eq 1 "a">: error calling eq: incompatible types for comparison',
    ],
    [
      '{{lt .spec .spec}}',
      '1:2: executing "output" at <lt .spec .spec>: error calling lt: invalid type for comparison',
    ],
    ['{{not}}', '1:2: executing "output" at <not>: wrong number of args for not: want 1 got 0'],
    ['{{.kind "x"}}', '1:2: executing "output" at <.kind>: kind is not a method but has arguments'],
    ['{{1 2}}', '1:2: executing "output" at <1>: can\'t give argument to non-function 1'],
    ['{{nil}}', '1:2: executing "output" at <nil>: nil is not a command'],
    [
      '{{template "z"}}',
      '1:11: executing "output" at <{{template "z"}}>: template "z" not defined',
    ],
    [
      '{{base64decode .spec}}',
      '1:15: executing "output" at <.spec>: wrong type for value; expected string; got map[string]interface {}',
    ],
    [
      '{{"%%" | base64decode}}',
      '1:9: executing "output" at <base64decode>: error calling base64decode: base64 decode failed: illegal base64 data at input byte 0',
    ],
    [
      '{{define "t"}}{{.x.y}}{{end}}{{template "t" .kind}}',
      '1:18: executing "t" at <.x.y>: can\'t evaluate field x in type string',
    ],
  ])('%s', (template, message) => {
    expect(failure(template)).toBe(`template: output:${message}`);
  });

  test('output before a failure is kept', () => {
    const template = parseGoTemplate('{{.kind}}{{len 3}}', functionNames);
    expect(() => runGoTemplate(template, object)).toThrow(TemplateRunError);
    try {
      runGoTemplate(template, object);
    } catch (error) {
      expect((error as TemplateRunError).written).toBe('Thing');
    }
  });

  test('a missing key is an error on request', () => {
    const template = parseGoTemplate('{{.nope}}', functionNames);
    expect(() => runGoTemplate(template, object, { strict: true })).toThrow(
      'template: output:1:2: executing "output" at <.nope>: map has no entry for key "nope"',
    );
  });
});

describe('CLIENT-1: templates have limits', () => {
  const limits = { stepsMax: 1000, lengthMax: 100, callsMax: 10 };
  const run = (template: string) =>
    runGoTemplate(parseGoTemplate(template, functionNames), object, { limits });

  test.each<[template: string, message: string]>([
    [
      '{{define "t"}}{{template "t"}}{{end}}{{template "t"}}',
      'exceeded maximum template depth (10)',
    ],
    ['{{printf "%1000d" 1}}', 'the template writes too much'],
    ['{{range .spec.list}}{{printf "%50d" 1}}{{end}}', 'the template writes too much'],
    [
      `${'{{range .spec.list}}'.repeat(8)}{{$x := 1}}${'{{end}}'.repeat(8)}`,
      'takes too many steps',
    ],
  ])('%s', (template, message) => {
    expect(() => run(template.replaceAll('{{range .spec', '{{range $.spec'))).toThrow(message);
  });

  test('a template is at most one MiB long', () => {
    expect(failure('x'.repeat(1024 * 1024 + 1))).toBe('template is too long');
  });

  test('spaces before an action take linear time', () => {
    const blanks = ' '.repeat(200_000);
    expect(fill(`a${blanks}b{{- "x" -}}${blanks}c`)).toBe(`a${blanks}bxc`);
  });
});
