/**
 * A certificate for loopback that nobody signed, with its key, for servers of tests that a client must be told to trust.
 *
 * It protects nothing; it is valid from 2020 to 2120.
 */

/** For `localhost` and `127.0.0.1`. */
export const LOOPBACK_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBYzCCAQigAwIBAgIBATAKBggqhkjOPQQDAjATMREwDwYDVQQDDAhsb29wYmFj
azAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowEzERMA8GA1UEAwwI
bG9vcGJhY2swWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAS1nJHSXaK7d2+4Juus
d8zX6bDB2ar8AuyhmZt04Bl+/6shSy0w0WO02LIIIxGKrH/8Gn0KYISDVo9O6LBS
DTeno0swSTAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwDAYDVR0TAQH/BAIw
ADAdBgNVHQ4EFgQUMUSmPixL84VI0O5YiYCuJhK7T+0wCgYIKoZIzj0EAwIDSQAw
RgIhANQHKauQT1K4/1k/WJERPylBa7Jo/pVEgGJWEr4A8RNDAiEAsG65OGcWbYZT
tbkKsBvbrUsdO2Lvrg6dpKb/YJQxXWQ=
-----END CERTIFICATE-----
`;

/** The key of {@link LOOPBACK_CERTIFICATE}; everyone knows it. */
export const LOOPBACK_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgSe9Vvbu/DqEe8AnX
RujhCmsTWyEcbfrrSqvEl4FJYmuhRANCAAS1nJHSXaK7d2+4Juusd8zX6bDB2ar8
AuyhmZt04Bl+/6shSy0w0WO02LIIIxGKrH/8Gn0KYISDVo9O6LBSDTen
-----END PRIVATE KEY-----
`;
