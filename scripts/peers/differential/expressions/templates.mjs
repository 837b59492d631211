// Forms of CEL expressions by type. `<int>` stands for an expression of that type, `<int|uint>` for
// one of either, `<any>` for one of any type, and `<bool x=int>` for one that may use the variable
// x, an integer. `same` and `other` are the type of the other operand, and a random one.

const texts = ['startsWith', 'endsWith', 'contains'];
const addresses = [
  ...['isUnspecified', 'isLoopback', 'isLinkLocalUnicast', 'isGlobalUnicast'],
  ...['isLinkLocalMulticast'],
];
const formats = [
  ...['dns1123Label', 'dns1123Subdomain', 'qualifiedName', 'labelValue', 'uri', 'uuid', 'byte'],
  ...['date', 'datetime', 'dns1035Label', 'dns1123LabelPrefix'],
];
const dateParts = [
  ...['getFullYear', 'getMonth', 'getDayOfMonth', 'getDate', 'getDayOfWeek', 'getDayOfYear'],
  ...['getHours', 'getMinutes', 'getSeconds', 'getMilliseconds'],
];
const verbs = [
  ...['%s', '%d', '%f', '%.2f', '%e', '%x', '%X', '%b', '%o', '%%', 'a%sb%s', '%5d', '%'],
];
const compared = ['int', 'string', 'double', 'uint', 'duration', 'timestamp', 'bool', 'bytes'];
const each = (list, make) => list.map(make);

const macros = (list, variable, predicate) =>
  each(['all', 'exists', 'exists_one'], (name) => `<${list}>.${name}(${variable}, ${predicate})`);

/** Forms of expressions by their type. */
export const templates = {
  string: [
    '(<string> + <string>)',
    'string(<int|uint|double|bool|duration|timestamp|bytes|string|ip|cidr|dyn|quantity>)',
    '<string>.charAt(<int>)',
    '<string>.substring(<int>)',
    '<string>.substring(<int>, <int>)',
    '<string>.replace(<string>, <string>)',
    '<string>.replace(<string>, <string>, <int>)',
    '<string>.lowerAscii()',
    '<string>.upperAscii()',
    '<string>.trim()',
    '<strings>.join()',
    '<strings>.join(<string>)',
    '<strings>[<int>]',
    '<map>[<string>]',
    '<string>.find(<regex>)',
    ...each(verbs, (verb) => `"${verb}".format([<any>])`).slice(0, 6),
    ...each(verbs, (verb) => `"${verb}".format([<any>, <any>])`).slice(6),
    'url(<string>).getHost()',
    ...each(
      ['getHost', 'getScheme', 'getPort', 'getHostname', 'getEscapedPath'],
      (name) => `<url>.${name}()`,
    ),
    '<optional>.orValue(<string>)',
    '<optional>.value()',
    '(type(<any>) == string ? "s" : "n")',
    '(<cidr>.masked() == <cidr> ? "m" : "u")',
    '(<bool> ? <string> : <string>)',
    '(<bool> ? <string> : <any>)',
    'strings.quote(<string>)',
    'string(<any>)',
    '<object>.name',
    '<objects>.filter(o, <bool o=object>)[0].name',
    '<objects>.map(o, <string o=object>).join(",")',
  ],
  int: [
    ...each(['+', '-', '*', '/', '%'], (operator) => `(<int> ${operator} <int>)`),
    '-<int>',
    'int(<string|double|uint|timestamp|int|bool|duration>)',
    'size(<string|ints|strings|map|bytes>)',
    '<string>.indexOf(<string>)',
    '<string>.lastIndexOf(<string>)',
    '<string>.indexOf(<string>, <int>)',
    '<string>.size()',
    '<ints>[<int>]',
    ...each(['sum', 'min', 'max'], (name) => `<ints>.${name}()`),
    ...each(['indexOf', 'lastIndexOf'], (name) => `<ints>.${name}(<int>)`),
    ...each(dateParts, (name) => `<timestamp>.${name}()`).slice(0, 5),
    ...each(dateParts, (name) => `<timestamp>.${name}(<zone>)`).slice(5),
    ...each(
      ['getHours', 'getMinutes', 'getSeconds', 'getMilliseconds'],
      (name) => `<duration>.${name}()`,
    ),
    '<quantity>.asInteger()',
    '<quantity>.compareTo(<quantity>)',
    '<ip>.family()',
    '<cidr>.prefixLength()',
    '<object>.count',
    '<objects>.map(o, o.list.filter(x, <bool x=int>).size()).sum()',
    '<objects>.map(o, <int o=object>)[0]',
  ],
  uint: [
    ...each(['+', '-', '*', '/', '%'], (operator) => `(<uint> ${operator} <uint>)`),
    'uint(<string|int|double>)',
  ],
  double: [
    ...each(['+', '-', '*', '/'], (operator) => `(<double> ${operator} <double>)`),
    'double(<string|int|uint>)',
    '-<double>',
    '<quantity>.asApproximateFloat()',
  ],
  bool: [
    ...each(['==', '!='], (operator) => `(<same> ${operator} <same>)`),
    '(<any> == <any>)',
    ...each(compared, (type) => `(<${type}> < <${type}>)`).slice(0, 4),
    ...each(compared, (type) => `(<${type}> >= <${type}>)`).slice(4),
    '(<int|double|uint> <= <int|double|uint|string>)',
    ...each(['&&', '||'], (operator) => `(<bool> ${operator} <bool>)`),
    '(<bool> && <bool> || <bool>)',
    '!<bool>',
    ...each(texts, (name) => `<string>.${name}(<string>)`),
    '<string>.matches(<regex>)',
    'matches(<string>, <regex>)',
    '(<int> in <ints>)',
    '(<string> in <strings|map>)',
    '(<any> in <ints|strings|map>)',
    ...macros('ints', 'x', '<bool x=int>'),
    ...macros('strings', 'x', '<bool x=string>'),
    ...macros('pair', 'k', '<bool k=string>'),
    ...macros('objects', 'o', '<bool o=object>'),
    ...macros('objects', 'o', 'o.list.exists(x, <bool x=int>)'),
    ...macros('named', 'k', '<bool k=string>'),
    ...macros('ints', 'x', '<ints>.all(y, x <= y)'),
    'has(<object>.name)',
    'has(<object>.list)',
    '<ints>.isSorted()',
    ...each(['isGreaterThan', 'isLessThan'], (name) => `<quantity>.${name}(<quantity>)`),
    ...each(['isQuantity', 'isIP', 'isCIDR', 'isURL', 'bool'], (name) => `${name}(<string>)`),
    ...each(addresses, (name) => `<ip>.${name}()`).slice(0, 2),
    ...each(addresses, (name) => `<ip>.${name}()`).slice(3),
    '<cidr>.containsIP(<ip|string>)',
    '<cidr>.containsCIDR(<cidr|string>)',
    'ip.isCanonical(<string>)',
    '<optional>.hasValue()',
    ...each(formats, (name) => `format.${name}().validate(<string>).hasValue()`).slice(0, 6),
    ...each(formats, (name) => `!format.${name}().validate(<string>).hasValue()`).slice(6),
    '(<type> == <type>)',
    ...each(['contains', 'equivalent', 'intersects'], (name) => `sets.${name}(<ints>, <ints>)`),
  ],
  ints: [
    '(<ints> + <ints>)',
    '[<int>, <int>]',
    '<ints>.filter(x, <bool x=int>)',
    '<ints>.map(x, <int x=int>)',
    '<ints>.map(x, <bool x=int>, <int x=int>)',
    '<strings>.map(x, <int x=string>)',
    '<objects>.map(o, o.count)',
    '<object>.list',
  ],
  strings: [
    '<string>.split(<string>)',
    '<string>.split(<string>, <int>)',
    '<string>.findAll(<regex>)',
    '<string>.findAll(<regex>, <int>)',
    '(<strings> + <strings>)',
    '<pair>.map(k, <string k=string>)',
    '<strings>.filter(x, <bool x=string>)',
    '[<string>, ?<optional>]',
    '<objects>.map(o, o.name)',
    '[<string>, <any>]',
  ],
  map: [
    '{<string>: <string>, <string>: <string>}',
    '{?<string>: <optional>}',
    '{"a": <string>}',
    '{<string>: <string>, <any>: <any>}',
  ],
  pair: ['{<string>: <string>}'],
  duration: [
    '(<duration> + <duration>)',
    '(<timestamp> - <timestamp>)',
    'duration(<string>)',
    '(<duration> - <duration>)',
  ],
  timestamp: [
    '(<timestamp> + <duration>)',
    '(<timestamp> - <duration>)',
    'timestamp(<string|int>)',
  ],
  quantity: [
    'quantity(<string>)',
    ...each(['add', 'sub'], (n) => `<quantity>.${n}(<quantity|int>)`),
  ],
  ip: ['ip(<string>)', '<cidr>.ip()'],
  cidr: ['cidr(<string>)', '<cidr>.masked()'],
  url: ['url(<string>)'],
  optional: [
    'optional.of(<string>)',
    '<optional>.or(<optional>)',
    '<optional>.optMap(v, <string v=string>)',
    '<optional>.optFlatMap(v, <optional v=string>)',
    'optional.ofNonZeroValue(<string>)',
    '<map>[?<string>]',
    '<strings>[?<int>]',
    '<object>.?name',
  ],
  bytes: ['bytes(<string>)', '(<bytes> + <bytes>)'],
  dyn: ['dyn(<any>)', '<map>[<string>]', '[<any>, <any>][<int>]', '{<any>: <any>}[<any>]'],
  type: ['type(<any>)'],
  object: ['<objects>[<int>]', '<objects>.filter(o, <bool o=object>)[0]', '<named>[<string>]'],
  objects: ['<objects>.filter(o, <bool o=object>)', '(<objects> + <objects>)'],
  named: [],
  regex: [],
  zone: [],
};

/** Turns an expression into one whose value is a text, by type. */
export const shown = {
  ...Object.fromEntries(
    each(
      ['int', 'bool', 'double', 'uint', 'duration', 'timestamp', 'bytes', 'ip', 'cidr'],
      (type) => [type, (text) => `string(${text})`],
    ),
  ),
  ...Object.fromEntries(
    each(['ints', 'strings', 'map', 'pair', 'dyn', 'type'], (type) => [
      type,
      (text) => `"%s".format([${text}])`,
    ]),
  ),
  string: (text) => text,
  url: (text) => `${text}.getHost()`,
  quantity: (text) => `"%s".format([${text}.asApproximateFloat()])`,
  optional: (text) => `${text}.orValue("none")`,
  object: (text) => `${text}.name`,
  objects: (text) => `string(${text}.size())`,
};

/** Types of complete expressions. */
export const types = Object.keys(shown);
