# Keeps one of every 16 pages of 4 blocks, another one in each group of 16, closes the gaps, and cuts times to whole seconds.
BEGIN { FS = OFS = "," }
$2 == "W" || $2 == "D" {
    if (!start) start = $1
    for (page = int($3 / 4); page * 4 < $3 + $4; page++) {
        group = int(page / 16)
        if (page % 16 != group * 5 % 16) continue
        from = page * 4 > $3 ? page * 4 : $3
        to = page * 4 + 4 < $3 + $4 ? page * 4 + 4 : $3 + $4
        print int(($1 - start) / 1e6) * 1000000, $2, group * 4 + from - page * 4, to - from
    }
}
