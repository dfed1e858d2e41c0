/// Reads whole numbers as people list cores and ports: `0-3`, `0,2`, `0-1,6`. In the order given; `None`: not such a
/// list, a range that runs backwards, a number twice, or more numbers than `count_max`.
pub fn parse_numbers(text: &str, count_max: usize) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        if first > last || last - first >= count_max {
            return None;
        }
        for number in first..=last {
            if numbers.contains(&number) || numbers.len() == count_max {
                return None;
            }
            numbers.push(number);
        }
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_numbers_mix_in_the_order_given() {
        assert_eq!(parse_numbers("0", 9), Some(vec![0]));
        assert_eq!(parse_numbers("0-3", 9), Some(vec![0, 1, 2, 3]));
        assert_eq!(parse_numbers(" 6, 0 - 1 ", 9), Some(vec![6, 0, 1]));
    }

    #[test]
    fn what_is_no_list_of_different_numbers_is_refused() {
        for text in ["", ",", "1,", "a", "-1", "3-1", "0-", "1,1", "0-2,1", "0-9", "0-18446744073709551615"] {
            assert_eq!(parse_numbers(text, 9), None, "{text}");
        }
    }
}
